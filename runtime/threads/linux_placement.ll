; Keeps workers off the cpu of the caller, on Linux. The system's own placement is not enough: schedulers of virtual
; machines that pack threads on few cpus were seen to wake a worker on the caller's cpu though another was idle, and to
; leave it waiting there for tens of milliseconds while the caller did the work alone.
;
; A cpu is taken out of a worker's affinity mask only if as many others as there are workers are left, and given back
; when the caller is seen elsewhere. A mask that somebody else has changed meanwhile is taken as it is. Many workers are
; left alone: each takes two system calls when the caller moves, and the others soon have the chunks of one that waits.

declare i32 @sched_getcpu()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare <16 x i64> @llvm.ctpop.v16i64(<16 x i64>)
declare i64 @llvm.vector.reduce.add.v16i64(<16 x i64>)
declare i1 @llvm.vector.reduce.or.v16i1(<16 x i1>)

define internal void @pool.keep.apart() {
  %workers = load i64, ptr @pool.workers
  %many = icmp ugt i64 %workers, 16
  br i1 %many, label %done, label %few
few:
  %cpu = call i32 @sched_getcpu()
  %avoided = load i32, ptr @pool.avoided
  %apart = icmp eq i32 %cpu, %avoided
  br i1 %apart, label %done, label %move
move:
  call void @pool.avoid(i32 %cpu)
  br label %done
done:
  ret void
}

define internal void @pool.avoid(i32 %cpu) noinline {
entry:
  store i32 %cpu, ptr @pool.avoided
  %known = icmp ult i32 %cpu, 1024                    ; as many as glibc's masks have; -1 is an error
  br i1 %known, label %begin, label %done
begin:
  %wide = zext i32 %cpu to i64
  %place = and i64 %wide, 63
  %bit = shl i64 1, %place
  %word = lshr i64 %wide, 6
  %mask = insertelement <16 x i64> zeroinitializer, i64 %bit, i64 %word
  %workers = load i64, ptr @pool.workers
  br label %look
look:
  %i = phi i64 [ 0, %begin ], [ %next, %each ]
  %more = icmp ult i64 %i, %workers
  br i1 %more, label %each, label %done
each:
  %worker = getelementptr %Worker, ptr @pool.crew, i64 %i
  call void @pool.move.off(ptr %worker, <16 x i64> %mask, i64 %workers)
  %next = add i64 %i, 1
  br label %look
done:
  ret void
}

; Takes the cpu in a mask from a worker, if that leaves it as many as %enough; what we took before comes back.
define internal void @pool.move.off(ptr %worker, <16 x i64> %cpu, i64 %enough) noinline {
  %mask.at = alloca [16 x i64], align 16
  %handle = load i64, ptr %worker
  store <16 x i64> zeroinitializer, ptr %mask.at, align 8
  %refused = call i32 @pthread_getaffinity_np(i64 %handle, i64 128, ptr %mask.at)
  %readable = icmp eq i32 %refused, 0
  br i1 %readable, label %read, label %done
read:
  %mask = load <16 x i64>, ptr %mask.at, align 8
  %given.at = getelementptr %Worker, ptr %worker, i64 0, i32 1
  %given = load <16 x i64>, ptr %given.at, align 8
  %changes = icmp ne <16 x i64> %mask, %given
  %changed = call i1 @llvm.vector.reduce.or.v16i1(<16 x i1> %changes)
  %taken.at = getelementptr %Worker, ptr %worker, i64 0, i32 2
  %taken = load <16 x i64>, ptr %taken.at, align 8
  %back = select i1 %changed, <16 x i64> zeroinitializer, <16 x i64> %taken
  %whole = or <16 x i64> %mask, %back
  %others = xor <16 x i64> %cpu, splat (i64 -1)
  %rest = and <16 x i64> %whole, %others
  %counts = call <16 x i64> @llvm.ctpop.v16i64(<16 x i64> %rest)
  %count = call i64 @llvm.vector.reduce.add.v16i64(<16 x i64> %counts)
  %room = icmp uge i64 %count, %enough
  %new = select i1 %room, <16 x i64> %rest, <16 x i64> %whole
  %gone = xor <16 x i64> %whole, %new
  store <16 x i64> %new, ptr %given.at, align 8
  store <16 x i64> %gone, ptr %taken.at, align 8
  %1 = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %given.at)
  ret void
done:
  ret void
}
