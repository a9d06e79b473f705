import pytest

from page_blocks import Block, PageError, read_blocks


def test_blocks_have_language_title_text_and_line():
    found = read_blocks('# Page\n\n```python\nprint(1)\n```\n\n```text title="output"\n1\n```\n', "page.md")
    assert found == [
        Block("python", None, "print(1)\n", "page.md", 4),
        Block("text", "output", "1\n", "page.md", 8),
    ]
    assert found[1].is_output
    assert found[0].place == "page.md:4"


def test_a_longer_fence_holds_shorter_ones():
    (found,) = read_blocks("````text\n```bash\n```\n````\n", "page.md")
    assert found.text == "```bash\n```\n"


def test_fences_in_lists_and_admonitions_lose_their_indent():
    markdown = (
        "1. First:\n\n    ```bash\n    ls\n    ```\n\n!!! note\n\n    Read this.\n\n    ```bash\n    pwd\n    ```\n"
    )
    assert [block.text for block in read_blocks(markdown, "page.md")] == ["ls\n", "pwd\n"]


def test_text_in_containers_is_no_code():
    markdown = "- An item\n\n  goes on\n\n    - and another\n\n      so does\n\n"
    markdown += "!!! note\n    Read this.\n\n    And this.\n\nEnd.\n"
    assert read_blocks(markdown, "page.md") == []


def test_a_line_that_goes_on_is_no_code():
    assert read_blocks("A sentence that is\n     indented by chance.\n", "page.md") == []


@pytest.mark.parametrize(
    ("markdown", "message"),
    [
        ("Text.\n\n    surelabel demo\n", r"page.md:3: an indented code block"),
        ("- An item\n\nText.\n\n    surelabel demo\n", r"page.md:5: an indented code block"),
        ("- An item\n\n      surelabel demo\n", r"page.md:3: an indented code block"),
        ("```\nls\n```\n", r"page.md:1: the language of a fence must be one of .* got ''"),
        ("Text.\n\n```perl\nls\n```\n", r"page.md:3: the language of a fence must be one of .* got 'perl'"),
        ("```python hl_lines=1\nls\n```\n", r"page.md:1: after a fence come a language and perhaps title"),
        ("```python\nls\n", r"page.md:1: a fence that is not closed"),
        ("```csv\na,b\n```\n", r"page.md:1: csv needs a title"),
        ('```text title="output"\n1\n```\n', r"page.md:2: an output must follow"),
        ('```json\n{}\n```\n\n```text title="output"\n1\n```\n', r"page.md:6: an output must follow"),
        ("\tls\n", r"page.md:1: a line starts with a tab"),
    ],
)
def test_what_is_not_written_as_it_should_be_is_told_with_file_and_line(markdown, message):
    with pytest.raises(PageError, match=message):
        read_blocks(markdown, "page.md")
