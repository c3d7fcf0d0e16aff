"""Writing past the caches: for matrices that are written once and read much later."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj


@intrinsic
def stream(typing_context, array, i, j, value):
    """``array[i, j] = value`` without reading the cache line first; indices must be in range."""

    def generate(context, builder, signature, arguments):
        target = arrayobj.make_array(array)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(
            context, builder, array, target, arguments[1:3], wraparound=False, boundscheck=False
        )
        word = ir.IntType(array.dtype.bitwidth)
        store = builder.store(
            builder.bitcast(arguments[3], word),
            builder.bitcast(place, word.as_pointer()),
            align=array.dtype.bitwidth // 8,
        )
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, array.dtype), generate
