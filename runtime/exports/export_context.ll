; The context of an exported model, which a run works on. export.py links this into the export, with one of the two
; files of weights, and the platform's part: @lw.allocate and @lw.release, which are aligned_alloc and free.
;
; Results are those of codegen/export/interface.py: 0, -1 no memory, -2 bad argument, -3 bad weights, -4 too small.

; Threads, the arena, its bytes, the image of the weights, and a mapping to give back; of a model of several stages how
; many these are, and how many outputs only a run knows the size of. At byte 56 is the address of the table of segments, of
; a model that has any. Kernels look at the first alone, and loops at that.
%Context = type { i64, ptr, i64, ptr, ptr, i64, i64 }

declare ptr @lw.allocate(i64)
declare void @lw.release(ptr)
declare i32 @lw.attach(ptr, ptr)
declare void @lw.detach(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; %bytes are those of the context, which is all zeros at first but for what is said here.
define i32 @lw.create(ptr %out, i32 %threads, ptr %path, i64 %arena.bytes, i64 %bytes) {
  %nowhere = icmp eq ptr %out, null
  br i1 %nowhere, label %bad, label %check
check:
  store ptr null, ptr %out
  %below = sub i32 %threads, 1
  %strange = icmp uge i32 %below, 1024
  br i1 %strange, label %bad, label %make
make:
  %context = call ptr @lw.allocate(i64 %bytes)
  %none = icmp eq ptr %context, null
  br i1 %none, label %no.memory, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 %bytes, i1 false)
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
  call void @lw.free.stages(ptr %context)
  call void @lw.free.segments(ptr %context)
  call void @lw.release(ptr %context)
  br label %done
done:
  ret void
}

; What follows is of models of several stages (codegen/stage_entry.py). Behind the first 64 bytes of a context is the
; table of memory that their entry shares (artifact/memory_table.py), with the address of this function, and behind that
; table, for each output whose size only a run knows, the memory that is kept for it, (address, bytes).

; Memory for a stage, or for an output that is kept; null where there is none.
define ptr @lw.grow(ptr %context, i64 %number, i64 %bytes) {
  %table = getelementptr i8, ptr %context, i64 64
  %stages = call i64 @lw.count.stages(ptr %context)
  %more = add i64 %bytes, 64
  %size = and i64 %more, -64
  %is.stage = icmp slt i64 %number, %stages
  br i1 %is.stage, label %stage, label %output
stage:
  %stage.words = shl i64 %number, 2
  %stage.word = add i64 %stage.words, 2
  %stage.at = getelementptr i64, ptr %table, i64 %stage.word
  call void @lw.replace(ptr %stage.at, i64 %size)
  %needed.at = getelementptr i64, ptr %stage.at, i64 2
  store i64 %bytes, ptr %needed.at
  %idle.at = getelementptr i64, ptr %stage.at, i64 3
  store i64 0, ptr %idle.at
  %stage.memory = load ptr, ptr %stage.at
  ret ptr %stage.memory
output:
  %place = sub i64 %number, %stages
  %kept.at = call ptr @lw.kept(ptr %context, i64 %place)
  call void @lw.replace(ptr %kept.at, i64 %size)
  %kept = load ptr, ptr %kept.at
  %kept.bytes.at = getelementptr i64, ptr %kept.at, i64 1
  %kept.bytes = load i64, ptr %kept.bytes.at
  %all.stages = shl i64 %stages, 2
  %first = add i64 %all.stages, 2
  %place.words = mul i64 %place, 3
  %output.word = add i64 %first, %place.words
  %output.at = getelementptr i64, ptr %table, i64 %output.word
  store ptr %kept, ptr %output.at
  %output.bytes.at = getelementptr i64, ptr %output.at, i64 1
  store i64 %kept.bytes, ptr %output.bytes.at
  ret ptr %kept
}

; Has memory of another size in the place of that at two words, (address, bytes). What was in it is lost.
define void @lw.replace(ptr %at, i64 %size) {
  %bytes.at = getelementptr i64, ptr %at, i64 1
  %old = load ptr, ptr %at
  call void @lw.release(ptr %old)
  store i64 0, ptr %bytes.at
  %new = call ptr @lw.allocate(i64 %size)
  store ptr %new, ptr %at
  %none = icmp eq ptr %new, null
  br i1 %none, label %done, label %made
made:
  store i64 %size, ptr %bytes.at
  br label %done
done:
  ret void
}

define i64 @lw.count.stages(ptr %context) {
  %at = getelementptr %Context, ptr %context, i64 0, i32 5
  %count = load i64, ptr %at
  ret i64 %count
}

; Where the memory is noted that is kept for an output.
define ptr @lw.kept(ptr %context, i64 %place) {
  %stages = call i64 @lw.count.stages(ptr %context)
  %outputs.at = getelementptr %Context, ptr %context, i64 0, i32 6
  %outputs = load i64, ptr %outputs.at
  %stage.words = shl i64 %stages, 2
  %output.words = mul i64 %outputs, 3
  %own.words = shl i64 %place, 1
  %a = add i64 %stage.words, %output.words
  %b = add i64 %a, %own.words
  %word = add i64 %b, 2
  %table = getelementptr i8, ptr %context, i64 64
  %at = getelementptr i64, ptr %table, i64 %word
  ret ptr %at
}

define void @lw.free.stages(ptr %context) {
  %table = getelementptr i8, ptr %context, i64 64
  %stages = call i64 @lw.count.stages(ptr %context)
  %outputs.at = getelementptr %Context, ptr %context, i64 0, i32 6
  %outputs = load i64, ptr %outputs.at
  br label %next.stage
next.stage:
  %stage = phi i64 [ 0, %0 ], [ %stage.next, %free.stage ]
  %more.stages = icmp slt i64 %stage, %stages
  br i1 %more.stages, label %free.stage, label %next.output
free.stage:
  %stage.words = shl i64 %stage, 2
  %stage.word = add i64 %stage.words, 2
  %stage.at = getelementptr i64, ptr %table, i64 %stage.word
  %memory = load ptr, ptr %stage.at
  call void @lw.release(ptr %memory)
  %stage.next = add i64 %stage, 1
  br label %next.stage
next.output:
  %place = phi i64 [ 0, %next.stage ], [ %place.next, %free.output ]
  %more.outputs = icmp slt i64 %place, %outputs
  br i1 %more.outputs, label %free.output, label %done
free.output:
  %kept.at = call ptr @lw.kept(ptr %context, i64 %place)
  %kept = load ptr, ptr %kept.at
  call void @lw.release(ptr %kept)
  %place.next = add i64 %place, 1
  br label %next.output
done:
  ret void
}

; What follows is of segments, which loops have grow (artifact/segment_table.py). The word before their table is how many
; there are.

; A segment of at least %bytes, twice as many as it has if there is memory for that; the first %kept bytes stay. Null
; where there is no memory.
define ptr @lw.grow.segment(ptr %context, i64 %number, i64 %bytes, i64 %kept) {
  %at = call ptr @lw.segment(ptr %context, i64 %number)
  %bytes.at = getelementptr i64, ptr %at, i64 1
  %old = load ptr, ptr %at
  %have = load i64, ptr %bytes.at
  %more = add i64 %bytes, 64
  %least = and i64 %more, -64
  %twice = shl i64 %have, 1
  %is.less = icmp slt i64 %twice, %least
  %size = select i1 %is.less, i64 %least, i64 %twice
  %keeps = icmp sgt i64 %kept, 0
  br i1 %keeps, label %more.memory, label %forget
forget:
  call void @lw.release(ptr %old)
  store ptr null, ptr %at
  store i64 0, ptr %bytes.at
  br label %more.memory
more.memory:
  %doubled = call ptr @lw.allocate(i64 %size)
  %is.full = icmp eq ptr %doubled, null
  br i1 %is.full, label %less.memory, label %made
less.memory:
  %enough = call ptr @lw.allocate(i64 %least)
  %none = icmp eq ptr %enough, null
  br i1 %none, label %no.memory, label %made
made:
  %new = phi ptr [ %doubled, %more.memory ], [ %enough, %less.memory ]
  %room = phi i64 [ %size, %more.memory ], [ %least, %less.memory ]
  store ptr %new, ptr %at
  store i64 %room, ptr %bytes.at
  br i1 %keeps, label %move, label %done
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %kept, i1 false)
  call void @lw.release(ptr %old)
  br label %done
done:
  ret ptr %new
no.memory:
  ret ptr null
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Where the address and bytes of a segment are noted.
define ptr @lw.segment(ptr %context, i64 %number) {
  %table.at = getelementptr i8, ptr %context, i64 56
  %table = load ptr, ptr %table.at
  %words = mul i64 %number, 3
  %word = add i64 %words, 2
  %at = getelementptr i64, ptr %table, i64 %word
  ret ptr %at
}

define void @lw.free.segments(ptr %context) {
  %table.at = getelementptr i8, ptr %context, i64 56
  %table = load ptr, ptr %table.at
  %none = icmp eq ptr %table, null
  br i1 %none, label %done, label %begin
begin:
  %count.at = getelementptr i64, ptr %table, i64 -1
  %count = load i64, ptr %count.at
  br label %next
next:
  %number = phi i64 [ 0, %begin ], [ %number.next, %free ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %free, label %done
free:
  %at = call ptr @lw.segment(ptr %context, i64 %number)
  %memory = load ptr, ptr %at
  call void @lw.release(ptr %memory)
  %number.next = add i64 %number, 1
  br label %next
done:
  ret void
}
