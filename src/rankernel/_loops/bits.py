"""Counting bits."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context, word):
    """Count the bits that are set in a 64-bit word: one machine instruction."""

    def generate(context, builder, signature, arguments):
        count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(count, arguments)

    return types.uint64(types.uint64), generate
