"""Use the double with python-telegram-bot, and print what that library understood."""

import asyncio
import json
import sys

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.error import BadRequest, Conflict, InvalidToken, RetryAfter

URL, TOKEN = sys.argv[1:]


async def main():
    seen = {}
    async with Bot(TOKEN, base_url=f"{URL}/bot") as bot:
        seen["name"] = bot.username
        keys = InlineKeyboardMarkup([[InlineKeyboardButton("Deny", callback_data="code.1")]])
        sent = await bot.send_message(42, "A question", reply_markup=keys)
        updates = await bot.get_updates(timeout=60)
        while len(updates) < 2:
            updates = await bot.get_updates(timeout=60)
        said, pressed = updates[0].message, updates[1].callback_query
        seen["text"], seen["sender"] = said.text, said.from_user.id
        seen["data"], seen["same"] = pressed.data, pressed.message.message_id == sent.message_id
        await pressed.answer("Recorded")
        edited = await bot.edit_message_text("Closed", 42, sent.message_id)
        seen["edited"] = bool(edited.edit_date) and edited.reply_markup is None
        seen["left"] = len(await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0))
        seen["errors"] = []
        for call, kind in (
            (lambda: bot.send_message(42, "x" * 5000), BadRequest),
            (lambda: bot.send_message(43, "busy"), RetryAfter),
            (lambda: bot.get_updates(timeout=60), Conflict),
        ):
            try:
                await call()
            except kind as error:
                seen["errors"].append(kind.__name__)
                if kind is RetryAfter:
                    seen["retry"] = int(error._retry_after.total_seconds())
    try:
        await Bot(TOKEN + "x", base_url=f"{URL}/bot").initialize()
    except InvalidToken:
        seen["errors"].append("InvalidToken")
    print(json.dumps(seen))


asyncio.run(main())
