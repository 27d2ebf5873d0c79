"""Use the double with aiogram, and print what that library understood."""

import asyncio
import json
import sys

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

URL, TOKEN = sys.argv[1:]


async def main():
    seen = {}
    session = AiohttpSession(api=TelegramAPIServer.from_base(URL))
    bot = Bot(TOKEN, session=session)
    seen["name"] = (await bot.get_me()).username
    button = InlineKeyboardButton(text="Deny", callback_data="code.1")
    keys = InlineKeyboardMarkup(inline_keyboard=[[button]])
    sent = await bot.send_message(42, "A question", reply_markup=keys)
    updates = await bot.get_updates(timeout=60)
    while len(updates) < 2:
        updates = await bot.get_updates(timeout=60)
    said, pressed = updates[0].message, updates[1].callback_query
    seen["text"], seen["sender"] = said.text, said.from_user.id
    seen["data"], seen["same"] = pressed.data, pressed.message.message_id == sent.message_id
    await bot.answer_callback_query(pressed.id, text="Recorded")
    edited = await bot.edit_message_text(text="Closed", chat_id=42, message_id=sent.message_id)
    seen["edited"] = bool(edited.edit_date) and edited.reply_markup is None
    seen["left"] = len(await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0))
    seen["errors"] = []
    for call, kind, name in (
        (lambda: bot.send_message(42, "x" * 5000), TelegramBadRequest, "BadRequest"),
        (lambda: bot.send_message(43, "busy"), TelegramRetryAfter, "RetryAfter"),
        (lambda: bot.get_updates(timeout=60), TelegramConflictError, "Conflict"),
        (
            lambda: Bot(TOKEN + "x", session=session).get_me(),
            TelegramUnauthorizedError,
            "InvalidToken",
        ),
    ):
        try:
            await call()
        except kind as error:
            seen["errors"].append(name)
            if name == "RetryAfter":
                seen["retry"] = error.retry_after
    await session.close()
    print(json.dumps(seen))


asyncio.run(main())
