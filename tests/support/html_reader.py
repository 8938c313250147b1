"""Reads HTML as a browser would: which elements there are, and which text."""

from html.parser import HTMLParser

VOID = {"img", "br", "input", "link", "meta"}


class Reader(HTMLParser):
    """Mutable: the elements of a page that are open, all that there were, and the text outside of its style."""

    def __init__(self, page):
        super().__init__()
        self.open, self.names, self.text, self.attributes = [], [], "", []
        self.feed(page)
        self.close()
        assert self.open == [], "each element is closed"

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
