# SPDX-License-Identifier: GPL-2.0-only
"""compat/rbtree.c against a sorted list, and the properties that make it a red-black tree."""

from __future__ import annotations

import bisect
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI
from hypothesis import given
from hypothesis import strategies as st

# The binding offers the core, not its shims: they are compiled here, with the
# walk to a place that the kernel leaves to its callers.
SOURCE = """
#include <linux/rbtree.h>
struct item { struct rb_node node; unsigned long long key; };
void item_add(struct rb_root *root, struct item *item)
{
    struct rb_node **link = &root->rb_node, *parent = NULL;

    while (*link) {
        parent = *link;
        link = item->key < rb_entry(parent, struct item, node)->key ?
                   &parent->rb_left : &parent->rb_right;
    }
    rb_link_node(&item->node, parent, link);
    rb_insert_color(&item->node, root);
}
"""
DECLARATIONS = """
struct rb_node {
    struct rb_node *rb_parent, *rb_left, *rb_right;
    bool rb_is_red;
};
struct rb_root { struct rb_node *rb_node; };
struct item { struct rb_node node; unsigned long long key; };
void item_add(struct rb_root *, struct item *);
void rb_erase(struct rb_node *, struct rb_root *);
struct rb_node *rb_next(const struct rb_node *);
struct rb_node *rb_prev(const struct rb_node *);
struct rb_node *rb_first(const struct rb_root *);
struct rb_node *rb_last(const struct rb_root *);
"""

Rb = tuple[Any, Any]


@pytest.fixture(scope="module")
def rb(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Rb:
    folder = tmp_path_factory.mktemp("rbtree")
    (folder / "item.c").write_text(SOURCE)
    library = folder / "rbtree.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=gnu11", "-O1", "-shared", "-fPIC", f"-I{root / 'compat'}"]
    files = [str(folder / "item.c"), str(root / "compat/rbtree.c")]
    subprocess.run([*compiler, *flags, *files, "-o", str(library)], check=True)
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    return ffi, ffi.dlopen(str(library))


class Tree:
    """The tree and a sorted list of what should be in it."""

    def __init__(self, rb: Rb) -> None:
        self.ffi, self.lib = rb
        self.root = self.ffi.new("struct rb_root *")
        self.items: list[Any] = []  # those of one key in the order of addition
        self.keys: list[int] = []

    def add(self, key: int) -> None:
        item = self.ffi.new("struct item *", {"key": key})
        self.lib.item_add(self.root, item)
        place = bisect.bisect_right(self.keys, key)
        self.keys.insert(place, key)
        self.items.insert(place, item)

    def erase(self, place: int) -> None:
        del self.keys[place]
        item = self.items.pop(place)
        self.lib.rb_erase(self.node(item), self.root)

    def node(self, item: Any) -> Any:
        return self.ffi.addressof(item, "node")

    def walk(self, first: Any, step: Any) -> list[Any]:
        nodes = []
        while first:
            nodes.append(first)
            assert len(nodes) <= len(self.items)
            first = step(first)
        return nodes

    def black_height(self, node: Any, parent: Any) -> int:
        """Black nodes down to a leaf, the same on every way; no red under red."""
        if not node:
            return 0
        assert node.rb_parent == parent
        if node.rb_is_red:
            assert parent and not parent.rb_is_red
        left = self.black_height(node.rb_left, node)
        assert left == self.black_height(node.rb_right, node)
        return left + (not node.rb_is_red)

    def check(self) -> None:
        nodes = [self.node(item) for item in self.items]
        lib, root = self.lib, self.root
        assert self.walk(lib.rb_first(root), lib.rb_next) == nodes
        assert self.walk(lib.rb_last(root), lib.rb_prev) == nodes[::-1]
        top = root.rb_node
        assert not (top and top.rb_is_red)
        self.black_height(top, self.ffi.NULL)


def test_an_empty_tree_has_no_ends(rb: Rb) -> None:
    tree = Tree(rb)
    assert not tree.lib.rb_first(tree.root)
    assert not tree.lib.rb_last(tree.root)


@pytest.mark.parametrize(
    "keys",
    [range(200), range(199, -1, -1), [7] * 100, [n * 89 % 200 for n in range(200)]],
    ids=["ascending", "descending", "equal", "scattered"],
)
def test_built_up_and_taken_down(rb: Rb, keys: Any) -> None:
    tree = Tree(rb)
    for key in keys:
        tree.add(key)
        tree.check()
    # From the front, the back and the middle in turn.
    for turn in range(len(tree.items)):
        tree.erase((0, -1, len(tree.items) // 2)[turn % 3])
        tree.check()


# An even number is a key to be added, an odd one a place to erase at.
@given(st.lists(st.integers(0, 63), max_size=200))
def test_as_a_sorted_list(rb: Rb, numbers: list[int]) -> None:
    tree = Tree(rb)
    for number in numbers:
        if number % 2 == 0:
            tree.add(number)
        elif tree.items:
            tree.erase(number % len(tree.items))
        tree.check()
    while tree.items:
        tree.erase(0)
        tree.check()
    assert not tree.root.rb_node
