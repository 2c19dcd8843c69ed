"""The page of a report, taken apart."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects the open elements, to see that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert not any(name in ("src", "href") for name, _ in attrs), "a page of its own"
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_data(self, data):
        self.text.append(data)
