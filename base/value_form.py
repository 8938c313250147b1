"""How callers see an input or output of a model that is no tensor: a list of arrays, a dict, or what may be absent."""

from __future__ import annotations

from typing import Literal

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ValueForm:
    """An input or output by its name, and the arrays of native code that it is made of.

    ``"tensor"``: one array. ``"list"``: a list of ``count`` arrays, each of its own. ``"ragged"``: a list of any length
    of arrays of one rank, in two arrays: the elements of all, one array behind the other, and their extents, a row of
    int64 for each, which begins with -1 for each axis that it has less than others; those of an input have the extents
    of ``shape``, None for any. ``"map"``: a dict, in two arrays: its
    keys in ascending order, and their values. ``"absent"``: None, no array.

    One that is ``optional`` has one more array in front, a bool: where it does not hold the value is None, and what the
    others hold has no meaning.
    """

    name: str
    kind: Literal["tensor", "list", "ragged", "map", "absent"] = "tensor"
    count: int = 0
    optional: bool = False
    shape: tuple[int | None, ...] = ()

    @property
    def arrays(self) -> int:
        """How many arrays it is made of."""
        own = {"tensor": 1, "list": self.count, "ragged": 2, "map": 2, "absent": 0}[self.kind]
        return own + self.optional

    @property
    def array_names(self) -> tuple[str, ...]:
        """The names of these arrays."""
        match self.kind:
            case "tensor":
                own: tuple[str, ...] = (self.name,)
            case "list":
                own = tuple(f"{self.name}.{number}" for number in range(self.count))
            case "ragged":
                own = f"{self.name}.values", f"{self.name}.extents"
            case "map":
                own = f"{self.name}.keys", f"{self.name}.values"
            case "absent":
                own = ()
        return (f"{self.name}.present", *own) if self.optional else own


def grouped(forms: tuple[ValueForm, ...]) -> tuple[ValueForm, ...]:
    """The forms of all inputs or outputs; none where each is one array by its own name, as most models have them."""
    return forms if any(form.array_names != (form.name,) for form in forms) else ()
