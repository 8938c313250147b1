; Tasks with the signature of the pool's, for pool_scenarios.py. A closure is an array of 8-byte slots.
declare i64 @pthread_self()

; slots: [data]. data[i] += 1
define i32 @count(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
entry:
  %data = load ptr, ptr %closure
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %data, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}

; slots: [data, pool]. Counts row i of 64 elements by a parallel loop of its own.
define i32 @nested(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
entry:
  %inner = alloca ptr
  %data = load ptr, ptr %closure
  %pool.at = getelementptr ptr, ptr %closure, i64 1
  %pool = load ptr, ptr %pool.at
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, 64
  %row = getelementptr i64, ptr %data, i64 %offset
  store ptr %row, ptr %inner
  %error = call i32 %pool(ptr %ctx, ptr @count, ptr %inner, i64 64)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 %error
}

; slots: [data, index]. Like count, but the chunk with that index ends with error index + 1 instead of counting.
define i32 @fail(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
  %index.at = getelementptr i64, ptr %closure, i64 1
  %index = load i64, ptr %index.at
  %from = icmp sge i64 %index, %begin
  %to = icmp slt i64 %index, %end
  %here = and i1 %from, %to
  br i1 %here, label %bad, label %good
bad:
  %wide = add i64 %index, 1
  %error = trunc i64 %wide to i32
  ret i32 %error
good:
  %ok = call i32 @count(ptr %ctx, ptr %closure, i64 %begin, i64 %end)
  ret i32 %ok
}

; slots: [data, others]. data[0] counts arrivals; returns once as many have arrived as others says, or with error 7 after
; about ten seconds: it succeeds only on as many threads at once.
define i32 @meet(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
entry:
  %data = load ptr, ptr %closure
  %others.at = getelementptr i64, ptr %closure, i64 1
  %others = load i64, ptr %others.at
  %before = atomicrmw add ptr %data, i64 1 seq_cst
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %arrived = load atomic i64, ptr %data seq_cst, align 8
  %all = icmp sge i64 %arrived, %others
  br i1 %all, label %done, label %again
again:
  %next = add i64 %i, 1
  %late = icmp sgt i64 %next, 10000000000
  br i1 %late, label %failed, label %look
failed:
  ret i32 7
done:
  ret i32 0
}

; slots: [data]. data[0] and data[1] are the iterations of the shortest and of the longest chunk.
define i32 @measure(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
  %data = load ptr, ptr %closure
  %longest = getelementptr i64, ptr %data, i64 1
  %length = sub i64 %end, %begin
  %1 = atomicrmw min ptr %data, i64 %length monotonic
  %2 = atomicrmw max ptr %longest, i64 %length monotonic
  ret i32 0
}

; slots: [data, nanoseconds]. Sleeps in the first iteration, so that the one who runs it comes last.
%Timespec = type { i64, i64 }
declare i32 @nanosleep(ptr, ptr)
define i32 @doze(ptr %ctx, ptr %closure, i64 %begin, i64 %end) {
  %time = alloca %Timespec
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %sleep, label %run
sleep:
  %duration.at = getelementptr i64, ptr %closure, i64 1
  %duration = load i64, ptr %duration.at
  store i64 0, ptr %time
  %fraction = getelementptr %Timespec, ptr %time, i64 0, i32 1
  store i64 %duration, ptr %fraction
  %1 = call i32 @nanosleep(ptr %time, ptr null)
  br label %run
run:
  %ok = call i32 @count(ptr %ctx, ptr %closure, i64 %begin, i64 %end)
  ret i32 %ok
}
