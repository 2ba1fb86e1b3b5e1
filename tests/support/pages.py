"""Elements, forms and links of a page, as a browser reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"input", "img", "br", "hr", "meta", "link", "col", "rect", "circle", "path", "line"}


@dataclass
class Element:
    """An element with its attributes, the text in it, and what it holds."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all within, in order."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements of a tag with these attributes."""
        return [
            one
            for one in self.walk()
            if one.tag == tag
            and all(one.attributes.get(name.strip("_")) == v for name, v in attributes.items())
        ]

    @property
    def text(self) -> str:
        """All text within."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def by_id(self, name: str) -> Element:
        """The element of an id."""
        return next(one for one in self.walk() if one.attributes.get("id") == name)

    def fields(self) -> dict[str, str]:
        """The values that a form sends before anybody types; buttons send none."""
        found: dict[str, str] = {}
        for one in self.walk():
            name = one.attributes.get("name")
            if name is None or one.tag == "button":
                continue
            if one.tag == "textarea":
                # the first line break of a text area is no part of it
                found[name] = one.text.removeprefix("\n")
            elif one.tag == "select":
                options = one.all("option")
                chosen = [o for o in options if "selected" in o.attributes] or options
                found[name] = chosen[0].attributes.get("value", chosen[0].text)
            elif one.attributes.get("type") != "checkbox" or "checked" in one.attributes:
                found[name] = one.attributes.get("value", "")
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1:
            if self.open.pop().tag == tag:
                break

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Element:
    """The elements of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.root
