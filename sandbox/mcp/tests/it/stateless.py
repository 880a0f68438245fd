"""A server of the Python SDK that speaks revision 2026-07-28 over HTTP, on the port that it is given."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

server = MCPServer("stateless")


def later() -> str:
    """A tool that was not there at first."""
    return "later"


@server.tool()
async def place(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    number: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Number"})],
) -> str:
    """Says what the headers and the body agree on."""
    return f"{region} {number}"


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Reports progress."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
    return "done"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool, and says so to those who listen."""
    server.add_tool(later)
    await ctx.notify_tools_changed()
    return "grown"


server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
