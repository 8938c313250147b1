; The context of an exported model, which a run works on. export.py links this into the export, with one of the two
; files of weights, and the platform's part: @lw.allocate and @lw.release, which are aligned_alloc and free.
;
; Results are those of codegen/export/interface.py: 0, -1 no memory, -2 bad argument, -3 bad weights.

; Threads, the arena, its bytes, the image of the weights, and a mapping to give back. Kernels look at the first alone.
%Context = type { i64, ptr, i64, ptr, ptr }

declare ptr @lw.allocate(i64)
declare void @lw.release(ptr)
declare i32 @lw.attach(ptr, ptr)
declare void @lw.detach(ptr)

define i32 @lw.create(ptr %out, i32 %threads, ptr %path, i64 %arena.bytes) {
  %nowhere = icmp eq ptr %out, null
  br i1 %nowhere, label %bad, label %check
check:
  store ptr null, ptr %out
  %below = sub i32 %threads, 1
  %strange = icmp uge i32 %below, 1024
  br i1 %strange, label %bad, label %make
make:
  %context = call ptr @lw.allocate(i64 64)
  %none = icmp eq ptr %context, null
  br i1 %none, label %no.memory, label %fill
fill:
  store %Context zeroinitializer, ptr %context
  %wide = zext i32 %threads to i64
  store i64 %wide, ptr %context
  %attached = call i32 @lw.attach(ptr %context, ptr %path)
  %lost = icmp ne i32 %attached, 0
  br i1 %lost, label %undo, label %reserve
reserve:
  %reserved = call i32 @lw.reserve(ptr %context, i64 %arena.bytes)
  %full = icmp ne i32 %reserved, 0
  br i1 %full, label %undo, label %done
undo:
  %code = phi i32 [ %attached, %fill ], [ %reserved, %reserve ]
  call void @lw.destroy(ptr %context)
  ret i32 %code
done:
  store ptr %context, ptr %out
  ret i32 0
no.memory:
  ret i32 -1
bad:
  ret i32 -2
}

; Makes the arena at least so large. What was in it is lost.
define i32 @lw.reserve(ptr %context, i64 %bytes) {
  %arena.at = getelementptr %Context, ptr %context, i64 0, i32 1
  %bytes.at = getelementptr %Context, ptr %context, i64 0, i32 2
  %have = load i64, ptr %bytes.at
  %enough = icmp sge i64 %have, %bytes
  br i1 %enough, label %done, label %grow
grow:
  %old = load ptr, ptr %arena.at
  call void @lw.release(ptr %old)
  store i64 0, ptr %bytes.at
  %new = call ptr @lw.allocate(i64 %bytes)
  store ptr %new, ptr %arena.at
  %none = icmp eq ptr %new, null
  br i1 %none, label %no.memory, label %grown
grown:
  store i64 %bytes, ptr %bytes.at
  br label %done
done:
  ret i32 0
no.memory:
  ret i32 -1
}

define void @lw.destroy(ptr %context) {
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %free
free:
  call void @lw.detach(ptr %context)
  %arena.at = getelementptr %Context, ptr %context, i64 0, i32 1
  %arena = load ptr, ptr %arena.at
  call void @lw.release(ptr %arena)
  call void @lw.release(ptr %context)
  br label %done
done:
  ret void
}
