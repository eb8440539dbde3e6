"""Subgroups of shards: checks assignments, and finds the group of a shard."""

from typing import Any, List, Optional, Sequence

__all__ = ["all_shards", "checked_groups", "group_of", "subgroup_size"]

Groups = List[List[int]]


def all_shards(count: int) -> Groups:
    """Returns the assignment with all shards in one group."""
    return [list(range(count))]


def subgroup_size(group_assignment: Optional[Any], count: int) -> int:
    """Returns the number of shards over which a gradient is summed.

    Args:
      group_assignment: a list of lists of shard numbers; None or empty: one group of all shards.
      count: number of shards.

    Raises:
      ValueError: the assignment is not a list of lists, does not contain each shard exactly once,
        or has groups of different sizes.
    """
    if not group_assignment:
        return count
    return len(checked_groups(group_assignment, count)[0])


def checked_groups(group_assignment: Any, count: int) -> Groups:
    """Returns the assignment, after checking that it partitions all shards into equal groups.

    Args:
      group_assignment: a list of lists of shard numbers.
      count: number of shards.

    Raises:
      ValueError: it does not.
    """
    if not isinstance(group_assignment, list) or not all(
        isinstance(group, list) for group in group_assignment
    ):
        raise ValueError(
            "Argument `group_assignment` must be a list of lists. Received: "
            f"group_assignment={group_assignment}"
        )
    members = [member for group in group_assignment for member in group]
    if sorted(members) != list(range(count)):
        raise ValueError(
            f"Argument `group_assignment` must be a permutation of range({count}). Each of the "
            f"{count} shards must be in one group, once. Received: "
            f"group_assignment={group_assignment}"
        )
    sizes = [len(group) for group in group_assignment]
    if len(set(sizes)) != 1:
        raise ValueError(
            "The size of each subgroup in `group_assignment` must be equal. Received: "
            f"group_assignment={group_assignment}, with groups of sizes {sizes}"
        )
    return [list(group) for group in group_assignment]


def group_of(index: int, groups: Sequence[Sequence[int]]) -> int:
    """Returns the index of the group that contains shard `index`."""
    for number, group in enumerate(groups):
        if index in group:
            return number
    raise ValueError(f"shard {index} is in none of the groups {groups}")
