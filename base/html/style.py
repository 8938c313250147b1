"""The style of views. All rules are about what is inside of a view, so that nothing else on the page changes.

JupyterLab and VS Code say by an attribute or a class whether they are dark, and have variables for their colours and
fonts. On another page ``light-dark`` goes by the scheme that the page itself has chosen. A rule that names the class
twice outweighs what JupyterLab says of all tables, lists and code.
"""

STYLE = """
.loopwright-view {
  --lw-ink: var(--jp-content-font-color1, var(--vscode-editor-foreground, light-dark(#1d2126, #dde1e6)));
  --lw-dim: var(--jp-content-font-color2, var(--vscode-descriptionForeground, light-dark(#5a6169, #a9b1bb)));
  --lw-page: var(--jp-layout-color0, var(--vscode-editor-background, Canvas));
  --lw-line: var(--jp-border-color2, var(--vscode-widget-border, light-dark(#dfdfda, #30343a)));
  --lw-bar: light-dark(#c6dcf5, #27496d);
  --lw-keyword: light-dark(#7a3e9d, #c39be0);
  --lw-kind: light-dark(#0b6a75, #79c4cc);
  --lw-number: light-dark(#8a5a00, #d9b36c);
  --lw-cost: light-dark(#8f4c00, #e8b26a);
  --lw-code: var(--jp-code-font-family, var(--vscode-editor-font-family, ui-monospace, Menlo, Consolas, monospace));
  max-width: 100%;
  color: var(--lw-ink);
  font-size: 13px;
  line-height: 1.45;
}
[data-jp-theme-light="true"] .loopwright-view, .vscode-light .loopwright-view, .vscode-high-contrast-light
.loopwright-view { color-scheme: light; }
[data-jp-theme-light="false"] .loopwright-view, .vscode-dark .loopwright-view, .vscode-high-contrast:not(
.vscode-high-contrast-light) .loopwright-view, html[theme="dark"] .loopwright-view, html[data-theme="dark"]
.loopwright-view { color-scheme: dark; }
.loopwright-view .lw-title { margin: 2px 0 6px; font-weight: 600; overflow-wrap: anywhere; }
.loopwright-view .lw-code { margin-block: 4px; overflow-x: auto; }
.loopwright-view .lw-scroll { max-height: 480px; margin-block: 4px; overflow: auto; }
.loopwright-view.loopwright-view code.lw-inline, .loopwright-view.loopwright-view .lw-code pre {
  margin: 0; padding: 0; border: 0; background: none; color: inherit; font: 12px/1.5 var(--lw-code);
  white-space: pre;
}
.loopwright-view .lw-keyword { color: var(--lw-keyword); }
.loopwright-view .lw-kind { color: var(--lw-kind); font-weight: 600; }
.loopwright-view span.lw-number { color: var(--lw-number); }
.loopwright-view .lw-quiet, .loopwright-view .lw-cut, .loopwright-view summary { color: var(--lw-dim); }
.loopwright-view .lw-cost { color: var(--lw-cost); }
.loopwright-view details { margin: 2px 0; }
.loopwright-view details > :not(summary) { margin-left: 14px; }
.loopwright-view .lw-code > details > :not(summary) { margin-left: 0; }
.loopwright-view summary { display: list-item; cursor: pointer; }
.loopwright-view.loopwright-view .lw-facts {
  display: grid; grid-template-columns: max-content 1fr; gap: 1px 14px; margin-block: 4px; padding: 0;
}
.loopwright-view.loopwright-view .lw-facts dt {
  float: none; width: auto; margin: 0; color: var(--lw-dim); font-weight: 400; white-space: nowrap;
}
.loopwright-view.loopwright-view .lw-facts dd { float: none; width: auto; margin: 0; overflow-wrap: anywhere; }
.loopwright-view.loopwright-view .lw-table {
  margin: 0; border: 0; border-collapse: collapse; color: inherit; font-size: inherit;
}
.loopwright-view.loopwright-view .lw-table tbody tr:nth-child(n) { background: none; }
.loopwright-view.loopwright-view .lw-table th, .loopwright-view.loopwright-view .lw-table td {
  max-width: 36em; padding: 2px 16px 2px 0; border: 0; border-bottom: 1px solid var(--lw-line);
  text-align: left; vertical-align: baseline; white-space: normal; overflow-wrap: break-word;
}
.loopwright-view.loopwright-view .lw-table th {
  position: sticky; top: 0; background: var(--lw-page); color: var(--lw-dim); font-weight: 400; white-space: nowrap;
}
.loopwright-view.loopwright-view .lw-table .lw-number {
  text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums;
}
.loopwright-view .lw-flame { box-sizing: border-box; min-width: 0; overflow: hidden; }
.loopwright-view > .lw-flame { margin-block: 6px 10px; }
.loopwright-view .lw-flame-parts { display: flex; align-items: flex-start; }
.loopwright-view .lw-flame-name {
  margin: 0 1px 1px 0; padding: 1px 4px; border-radius: 2px; background: var(--lw-bar); overflow: hidden;
  font: 12px/1.4 var(--lw-code); white-space: nowrap; text-overflow: ellipsis;
}
.loopwright-view .lw-share {
  display: inline-block; min-width: 90px; padding: 0 4px; border-radius: 2px; text-align: right;
  background: linear-gradient(to right, var(--lw-bar) var(--lw-share), transparent var(--lw-share));
}
"""
