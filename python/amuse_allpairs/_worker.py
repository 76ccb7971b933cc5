"""The worker of AMUSE's sockets channel: reads calls, has the engine do them, and sends the results.

A message is a header of 44 bytes and arrays. The header has four bytes (big-endian, error, and two that are not used
here) and ten int32: number of the call, number of the function, count of calls, and counts of the numbers in each
array. The arrays follow in the order of `ARRAYS`. After them come strings (lengths, then texts that end with a zero
byte) and numbers of units.
In a reply, the result codes of the function stand first in the array of int32. Function 0 ends the worker.
"""

from __future__ import annotations

import socket
import struct
import sys
import traceback
from typing import Any, Callable, Sequence

import numpy as np

from ._engine import Code, Engine
from ._functions import FUNCTIONS, Function

#: Numbers in a message, in their order: letter of the type, and type of numpy.
ARRAYS = {"i": "i4", "l": "i8", "f": "f4", "d": "f8", "b": "i1"}
HEADER = struct.Struct("=4b10i")
STOP = 0
BY_NUMBER = {function.number: function for function in FUNCTIONS.values()}


def read(connection: socket.socket, count: int) -> bytearray:
    """Reads as many bytes; an `EOFError` if the other side is gone."""
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        got = connection.recv_into(view[done:])
        if got == 0:
            raise EOFError
        done += got
    return data


def received(connection: socket.socket) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A message: the numbers of its header, and the arrays by the letters of their types."""
    header = HEADER.unpack(read(connection, HEADER.size))
    counts = header[7:]
    arrays: dict[str, Any] = {}
    for count, (letter, kind) in zip(counts, ARRAYS.items()):
        arrays[letter] = np.frombuffer(read(connection, count * np.dtype(kind).itemsize), kind)
    lengths = np.frombuffer(read(connection, 4 * counts[5]), "i4")
    arrays["s"] = [bytes(read(connection, int(length) + 1)[:-1]).decode() for length in lengths]
    read(connection, 8 * counts[6])
    return header[:7], arrays


def message(call: int, function: int, count: int, arrays: dict[str, Any], error: bool = False) -> bytes:
    """The bytes of a message."""
    numbers = [np.ascontiguousarray(arrays.get(letter, []), kind) for letter, kind in ARRAYS.items()]
    texts = [text.encode() for text in arrays.get("s", [])]
    counts = [len(array) for array in numbers] + [len(texts), 0]
    header = HEADER.pack(sys.byteorder == "big", error, 0, 0, call, function, count, *counts)
    lengths = np.array([len(text) for text in texts], "i4").tobytes()
    return header + b"".join(array.tobytes() for array in numbers) + lengths + b"".join(text + b"\0" for text in texts)


def answer(method: Callable[..., Any], arguments: list[Any], gives: str) -> tuple[int, Sequence[Any]]:
    """The result code of one call, and a result for each letter."""
    try:
        results = method(*arguments)
    except Code as other:
        return other.code, ["" if letter == "s" else 0 for letter in gives]
    return 0, (results,) if len(gives) == 1 else results or ()


def called(engine: Engine, function: Function, count: int, arrays: dict[str, Any]) -> dict[str, Any]:
    """Calls a function of the engine; the arrays of the reply."""
    taken = dict.fromkeys(arrays, 0)
    arguments = []
    for letter in function.takes:
        arguments.append(arrays[letter][taken[letter] : taken[letter] + count])
        taken[letter] += count
    method = engine.method(function.name)
    codes: Any
    columns: Sequence[Any]
    if function.of_arrays:
        codes, columns = answer(method, arguments, function.gives)
    else:
        each = [answer(method, [column[k] for column in arguments], function.gives) for k in range(count)]
        codes, columns = [code for code, _ in each], list(zip(*(results for _, results in each)))
    reply: dict[str, Any] = {}
    for letter in ARRAYS:
        found = [column for gives, column in zip("i" + function.gives, [codes, *columns]) if gives == letter]
        if found:
            reply[letter] = np.concatenate([np.broadcast_to(column, count) for column in found])
    reply["s"] = [text for gives, column in zip(function.gives, columns) if gives == "s" for text in column]
    return reply


def serve(connection: socket.socket) -> None:
    """Answers calls until the other side ends the worker or is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    engine = Engine()
    while True:
        try:
            (*_, call, number, count), arrays = received(connection)
        except EOFError:
            return
        if number == STOP:
            connection.sendall(message(call, number, count, {}))
            return
        try:
            if number not in BY_NUMBER:
                raise LookupError(f"Allpairs has no function with the number {number}: is AMUSE's version a newer one?")
            reply = message(call, number, count, called(engine, BY_NUMBER[number], count, arrays))
        except Exception as error:  # AMUSE raises it, with this text
            traceback.print_exc()
            reply = message(call, number, count, {"s": [str(error) or type(error).__name__]}, error=True)
        connection.sendall(reply)


def main(arguments: Sequence[str] = sys.argv[1:]) -> None:
    """Connects to AMUSE, which gives its port and host, and a word about MPI that does not matter here."""
    port, host = arguments[:2]
    with socket.create_connection((host, int(port))) as connection:
        serve(connection)
