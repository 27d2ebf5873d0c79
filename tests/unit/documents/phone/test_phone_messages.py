"""What a service does not report counts as absent."""

from rekindle.documents.phone.phone_messages import PhoneInput, PhoneMessage


def test_an_input_without_a_sender_names_no_one():
    """An empty id is never a paired chat or user."""
    heard = PhoneInput(cursor="7", channel="ntfy", press="code")
    assert (heard.chat, heard.user, heard.press_id, heard.at) == ("", "", "", None)
    assert not heard.is_forwarded
    assert not heard.is_edited


def test_a_message_has_no_buttons_by_default():
    assert PhoneMessage("text").buttons == ()
