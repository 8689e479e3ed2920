"""The peer of `cargo xtask bench python`: fastmcp's client and its server over stdio. Prints median nanoseconds."""

import asyncio
import json
import pathlib
import statistics
import sys
import time

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

SERVER = str(pathlib.Path(__file__).with_name("fastmcp_add.py"))


async def main():
    starts = []
    for _ in range(3):
        since = time.perf_counter_ns()
        async with Client(StdioTransport(sys.executable, [SERVER], keep_alive=False)) as client:
            assert (await client.call_tool("add", {"x": 1, "y": 2})).data == 3
            starts.append(time.perf_counter_ns() - since)
            calls = []
            for _ in range(1000):
                since = time.perf_counter_ns()
                await client.call_tool("add", {"x": 1, "y": 2})
                calls.append(time.perf_counter_ns() - since)
    print(json.dumps({"start": statistics.median(starts), "call": statistics.median(calls)}))


asyncio.run(main())
