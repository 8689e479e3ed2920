import os
from typing import List, Literal, Optional


def run(
    city: str,
    unit: Literal["c", "f"] = "c",
    days: Optional[int] = None,
    tags: List[str] = [],
):
    """Get the weather of a city.
    Args:
        city: The city
        unit: The unit of temperatures
        days: How many days
        tags: What to look at
    """
    return {"city": city, "unit": unit, "days": days, "tags": tags, "tool": os.environ["LLM_TOOL_NAME"]}
