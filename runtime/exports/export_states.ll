; The memory of states, of models that keep any from run to run (codegen/export/states.py).

declare ptr @lw.allocate(i64)
declare void @lw.release(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)

; Has at least %size bytes at the two words (address, bytes), of which the first %kept are as they were, and twice as many
; as before where they are more: so what is kept is copied now and then only. 0, or -1 where there is no memory.
define i32 @lw.reserve.state(ptr %at, i64 %size, i64 %kept) {
  %bytes.at = getelementptr i64, ptr %at, i64 1
  %have = load i64, ptr %bytes.at
  %old = load ptr, ptr %at
  %nothing = icmp eq ptr %old, null
  %less = icmp slt i64 %have, %size
  %short = or i1 %nothing, %less
  br i1 %short, label %grow, label %done
grow:
  %twice = shl i64 %have, 1
  %wanted = call i64 @llvm.smax.i64(i64 %twice, i64 %size)
  %more = add i64 %wanted, 64
  %whole = and i64 %more, -64
  %large = call ptr @lw.allocate(i64 %whole)
  %refused = icmp eq ptr %large, null
  br i1 %refused, label %again, label %made
again:                                             ; there may be room for this run, if for none behind it
  %least = add i64 %size, 64
  %lines = and i64 %least, -64
  %small = call ptr @lw.allocate(i64 %lines)
  %none = icmp eq ptr %small, null
  br i1 %none, label %no.memory, label %made
made:
  %new = phi ptr [ %large, %grow ], [ %small, %again ]
  %room = phi i64 [ %whole, %grow ], [ %lines, %again ]
  br i1 %nothing, label %placed, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %kept, i1 false)
  call void @lw.release(ptr %old)
  br label %placed
placed:
  store ptr %new, ptr %at
  store i64 %room, ptr %bytes.at
  br label %done
done:
  ret i32 0
no.memory:
  ret i32 -1
}

; Leaves the first %left bytes of each of %count rows of %row bytes, one behind the other.
define void @lw.shorten(ptr %memory, i64 %count, i64 %row, i64 %left) {
  br label %next
next:
  %number = phi i64 [ 0, %0 ], [ %following, %move ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %move, label %done
move:
  %from = mul i64 %number, %row
  %to = mul i64 %number, %left
  %source = getelementptr i8, ptr %memory, i64 %from
  %target = getelementptr i8, ptr %memory, i64 %to
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %left, i1 false)
  %following = add i64 %number, 1
  br label %next
done:
  ret void
}
