"""Labelling interfaces of Label Studio, written for tests."""

import html


def interface(config, label_names):
    """Return an interface for texts and labels, with the names of a `LabelConfig`."""
    choices = "".join(f'    <Choice value="{html.escape(name)}"/>\n' for name in label_names)
    control = f'<Choices name="{config.from_name}" toName="{config.to_name}" choice="multiple">'
    text = f'<Text name="{config.to_name}" value="${config.field}"/>'
    return f"<View>\n  {text}\n  {control}\n{choices}  </Choices>\n</View>"
