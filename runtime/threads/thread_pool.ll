; The thread pool of parallel loops. thread_pool.py adds the triple, and below this text the platform's part:
; @lw_pause, @pool.keep.apart, and the constants @pool.monotonic and @pool.sig_setmask.
;
;   i32 @lw_parallel_for(ptr ctx, ptr task, ptr closure, i64 extent)
;
; runs task(ctx, closure, begin, end) over contiguous chunks that partition [0, extent), on the calling thread and up to
; ctx->threads - 1 workers, and returns 0 or the first nonzero result of a task. It never fails for want of a thread.
; Each member of the team has an equal share of the range, always the same of the same range: what it wrote in one loop
; is in its cache in the next. Who is done with its own share takes chunks of the others'.
;
; One job runs at a time. A caller that finds the pool taken, by a loop around its own or by another thread, runs its
; loop alone: nothing ever waits for the pool. The caller waits only for workers that have *entered* its job; one that
; wakes too late, or does not exist (any more), delays nobody.
;
;   @pool.lock     owner's process id << 1 | taken. A pool that belongs to another process (it was inherited through a
;                  fork: its threads are not here) or to none yet is set up anew by whoever takes it first.
;   @pool.gate     generation << 32 | free places << 16 | workers inside. A job is published by writing the gate. A
;                  worker enters by trading a place for a presence, and each generation at most once.
;   @pool.taken    of each member's share, how many chunks are taken
;   @pool.sleepers, @pool.joining   who sleeps, and must be woken. Each side writes its own word, then reads the
;                  other's, sequentially consistent: so either the sleeper sees the news, or the other the sleeper.

; What threads fight over has cache lines of its own: 128 bytes, since neighbouring lines are fetched in pairs.
@pool.lock = internal global [16 x i64] zeroinitializer, align 128
@pool.gate = internal global [16 x i64] zeroinitializer, align 128
@pool.taken = internal global [1024 x [16 x i64]] zeroinitializer, align 128

%Job = type { ptr, ptr, ptr, i64, i64, [11 x i64] }   ; task, ctx, closure, extent, members of the team
@pool.job = internal global %Job zeroinitializer, align 128

@pool.error = internal global i32 0
@pool.sleepers = internal global i32 0                ; workers in or near cond_wait, changed under the mutex
@pool.joining = internal global i32 0                 ; whether the caller sleeps until the last worker leaves
@pool.workers = internal global i64 0
@pool.limit = internal global i64 0                   ; most workers there can be; falls when the system refuses one

%Worker = type { i64, [16 x i64], [16 x i64] }        ; handle, the cpus we gave it, and those we took from it for that
@pool.crew = internal global [1024 x %Worker] zeroinitializer, align 128
@pool.avoided = internal global i32 -1                ; the cpu that the workers keep off, -1 before they do

; Opaque to us; the largest of the systems we know take 64 (mutex), 48 (condition) and 128 bytes (signal set).
@pool.mutex = internal global [128 x i8] zeroinitializer, align 64
@pool.wake = internal global [128 x i8] zeroinitializer, align 64     ; a job was published
@pool.left = internal global [128 x i8] zeroinitializer, align 64     ; the last worker left

%Timespec = type { i64, i64 }
%Look = type { i64, i64 }                             ; generation seen, which member we are: 0 if we did not enter

declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i64 @llvm.smin.i64(i64, i64)

; --- the caller's side ---------------------------------------------------------------------------------------------

define i32 @lw_parallel_for(ptr %ctx, ptr %task, ptr %closure, i64 %extent) {
  %threads = load i64, ptr %ctx
  %alone = icmp sle i64 %threads, 1
  %short = icmp sle i64 %extent, 1
  %no.pool = or i1 %alone, %short
  br i1 %no.pool, label %inline, label %ask
ask:
  %taken = call i1 @pool.take()
  br i1 %taken, label %launch, label %inline
launch:
  %launched = call i32 @pool.launch(ptr %ctx, ptr %task, ptr %closure, i64 %extent, i64 %threads)
  ret i32 %launched
inline:
  %empty = icmp sle i64 %extent, 0
  br i1 %empty, label %nothing, label %run
run:
  %ran = call i32 %task(ptr %ctx, ptr %closure, i64 0, i64 %extent)
  ret i32 %ran
nothing:
  ret i32 0
}

; Whether the pool is now ours.
define internal i1 @pool.take() {
  %pid = call i32 @getpid()
  %wide = zext i32 %pid to i64
  %free = shl i64 %wide, 1
  %ours = or i64 %free, 1
  %state = load atomic i64, ptr @pool.lock monotonic, align 8
  %busy = icmp eq i64 %state, %ours
  br i1 %busy, label %no, label %try
try:
  %pair = cmpxchg ptr @pool.lock, i64 %state, i64 %ours acquire monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %took, label %no
took:
  %set.up = icmp eq i64 %state, %free
  br i1 %set.up, label %yes, label %new
new:
  call void @pool.reset()
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @pool.reset() noinline {
  %1 = call i32 @pthread_mutex_init(ptr @pool.mutex, ptr null)
  %2 = call i32 @pthread_cond_init(ptr @pool.wake, ptr null)
  %3 = call i32 @pthread_cond_init(ptr @pool.left, ptr null)
  store i64 0, ptr @pool.workers
  store i64 1023, ptr @pool.limit
  store atomic i32 0, ptr @pool.sleepers seq_cst, align 4
  store atomic i32 0, ptr @pool.joining seq_cst, align 4
  store atomic i64 0, ptr @pool.gate seq_cst, align 8
  ret void
}

; Runs a job on the pool, which is ours, and gives the pool back.
define internal i32 @pool.launch(ptr %ctx, ptr %task, ptr %closure, i64 %extent, i64 %threads) {
  %useful = call i64 @llvm.smin.i64(i64 %threads, i64 %extent)
  %wanted = sub i64 %useful, 1
  %workers = call i64 @pool.grow(i64 %wanted)
  call void @pool.keep.apart()
  %places = call i64 @llvm.smin.i64(i64 %workers, i64 %wanted)
  %team = add i64 %places, 1
  store ptr %task, ptr @pool.job
  store ptr %ctx, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 1)
  store ptr %closure, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 2)
  store i64 %extent, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 3)
  store i64 %team, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 4)
  store atomic i32 0, ptr @pool.error monotonic, align 4
  call void @pool.share.out(i64 %team)
  call void @pool.publish(i64 %places)
  call void @pool.run.chunks(i64 0)
  call void @pool.join()
  %error = load atomic i32, ptr @pool.error monotonic, align 4
  %ours = load atomic i64, ptr @pool.lock monotonic, align 8
  %free = and i64 %ours, -2
  store atomic i64 %free, ptr @pool.lock release, align 8
  ret i32 %error
}

define internal void @pool.share.out(i64 %team) {
entry:
  br label %loop
loop:
  %member = phi i64 [ 0, %entry ], [ %next, %loop ]
  %taken = getelementptr [16 x i64], ptr @pool.taken, i64 %member
  store atomic i64 0, ptr %taken monotonic, align 128
  %next = add i64 %member, 1
  %more = icmp slt i64 %next, %team
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Makes workers until there are as many as wanted, and returns how many there are: perhaps more, perhaps fewer.
define internal i64 @pool.grow(i64 %wanted) {
  %have = load i64, ptr @pool.workers
  %limit = load i64, ptr @pool.limit
  %target = call i64 @llvm.smin.i64(i64 %wanted, i64 %limit)
  %enough = icmp sge i64 %have, %target
  br i1 %enough, label %done, label %more
more:
  %made = call i64 @pool.create(i64 %have, i64 %target)
  ret i64 %made
done:
  ret i64 %have
}

; Signals belong to the program's own threads, so workers inherit a mask that blocks them all but the faults: those a
; thread raises by itself, and faulthandler reports them.
define internal i64 @pool.create(i64 %have, i64 %target) noinline {
entry:
  %all = alloca [256 x i8], align 16
  %before = alloca [256 x i8], align 16
  store i32 -1, ptr @pool.avoided                     ; the new ones do not yet
  %set_mask = load i32, ptr @pool.sig_setmask
  %1 = call i32 @sigfillset(ptr %all)
  %2 = call i32 @sigdelset(ptr %all, i32 4)           ; SIGILL
  %3 = call i32 @sigdelset(ptr %all, i32 8)           ; SIGFPE
  %4 = call i32 @sigdelset(ptr %all, i32 11)          ; SIGSEGV
  %5 = call i32 @pthread_sigmask(i32 %set_mask, ptr %all, ptr %before)
  br label %loop
loop:
  %count = phi i64 [ %have, %entry ], [ %one.more, %made ]
  %full = icmp sge i64 %count, %target
  br i1 %full, label %done, label %make
make:
  %worker = getelementptr %Worker, ptr @pool.crew, i64 %count
  store %Worker zeroinitializer, ptr %worker
  %refused = call i32 @pthread_create(ptr %worker, ptr null, ptr @pool.worker, ptr null)
  %ok = icmp eq i32 %refused, 0
  br i1 %ok, label %made, label %stop
made:
  %handle = load i64, ptr %worker
  %6 = call i32 @pthread_detach(i64 %handle)
  %one.more = add i64 %count, 1
  br label %loop
stop:                                                 ; do not ask again at each call
  store i64 %count, ptr @pool.limit
  br label %done
done:
  %7 = call i32 @pthread_sigmask(i32 %set_mask, ptr %before, ptr null)
  store i64 %count, ptr @pool.workers
  ret i64 %count
}

; Opens the gate to a new generation: nobody is inside, and no place is free, so nobody else writes it now.
define internal void @pool.publish(i64 %places) {
  %old = load atomic i64, ptr @pool.gate monotonic, align 8
  %generation = lshr i64 %old, 32
  %following = add i64 %generation, 1
  %high = shl i64 %following, 32
  %low = shl i64 %places, 16
  %gate = or i64 %high, %low
  %1 = atomicrmw xchg ptr @pool.gate, i64 %gate seq_cst
  %sleepers = load atomic i32, ptr @pool.sleepers seq_cst, align 4
  %none = icmp eq i32 %sleepers, 0
  br i1 %none, label %done, label %wake
wake:
  call void @pool.rouse(i64 %places)
  ret void
done:
  ret void
}

; Wakes sleeping workers. Passing through the mutex makes sure that whoever counted as a sleeper does sleep by now, or
; will look at the gate again; the signals can then be sent outside it, where the woken do not run into it.
define internal void @pool.rouse(i64 %places) noinline {
entry:
  %1 = call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %sleepers = load atomic i32, ptr @pool.sleepers monotonic, align 4
  %2 = call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  %wide = zext i32 %sleepers to i64
  %everyone = icmp sle i64 %wide, %places
  br i1 %everyone, label %all, label %some
all:
  %3 = call i32 @pthread_cond_broadcast(ptr @pool.wake)
  ret void
some:
  %left = phi i64 [ %places, %entry ], [ %fewer, %signal ]
  %enough = icmp sle i64 %left, 0
  br i1 %enough, label %done, label %signal
signal:
  %4 = call i32 @pthread_cond_signal(ptr @pool.wake)
  %fewer = sub i64 %left, 1
  br label %some
done:
  ret void
}

; Closes the gate, so that nobody enters any more, and waits until the last worker has left.
define internal void @pool.join() {
entry:
  %old = atomicrmw and ptr @pool.gate, i64 -4294901761 seq_cst        ; not 0xffff0000: no place is free
  %inside = and i64 %old, 65535
  %gone = icmp eq i64 %inside, 0
  br i1 %gone, label %done, label %spin
spin:
  %deadline = call i64 @pool.deadline()
  br label %look
look:
  %i = phi i64 [ 0, %spin ], [ %i.next, %again ]
  %gate = load atomic i64, ptr @pool.gate acquire, align 8
  %now.inside = and i64 %gate, 65535
  %now.gone = icmp eq i64 %now.inside, 0
  br i1 %now.gone, label %done, label %again
again:
  call void @lw_pause()
  %i.next = add i64 %i, 1
  %late = call i1 @pool.is.late(i64 %i.next, i64 %deadline)
  br i1 %late, label %sleep, label %look
sleep:
  call void @pool.join.asleep()
  br label %done
done:
  ret void
}

define internal void @pool.join.asleep() noinline {
entry:
  %1 = call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %2 = atomicrmw xchg ptr @pool.joining, i32 1 seq_cst
  br label %look
look:
  %gate = load atomic i64, ptr @pool.gate seq_cst, align 8
  %inside = and i64 %gate, 65535
  %gone = icmp eq i64 %inside, 0
  br i1 %gone, label %done, label %doze
doze:
  %3 = call i32 @pthread_cond_wait(ptr @pool.left, ptr @pool.mutex)
  br label %look
done:
  store atomic i32 0, ptr @pool.joining seq_cst, align 4
  %4 = call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  ret void
}

; --- the worker's side ---------------------------------------------------------------------------------------------

define internal ptr @pool.worker(ptr %unused) {
entry:
  br label %loop
loop:
  %seen = phi i64 [ -1, %entry ], [ %generation, %loop ]              ; no generation is -1
  %look = call %Look @pool.wait(i64 %seen)
  %generation = extractvalue %Look %look, 0
  %member = extractvalue %Look %look, 1
  call void @pool.run.chunks(i64 %member)
  call void @pool.leave()
  br label %loop
}

; Waits for a job after generation %seen, and enters it. Spins at first, then sleeps.
define internal %Look @pool.wait(i64 %seen) {
entry:
  %deadline = call i64 @pool.deadline()
  br label %spin
spin:
  %i = phi i64 [ 0, %entry ], [ %i.next, %again ]
  %last = phi i64 [ %seen, %entry ], [ %now, %again ]
  %look = call %Look @pool.enter(i64 %last)
  %now = extractvalue %Look %look, 0
  %member = extractvalue %Look %look, 1
  %entered = icmp ne i64 %member, 0
  br i1 %entered, label %done, label %again
again:
  call void @lw_pause()
  %i.next = add i64 %i, 1
  %late = call i1 @pool.is.late(i64 %i.next, i64 %deadline)
  br i1 %late, label %sleep, label %spin
sleep:
  %woken.for = call %Look @pool.wait.asleep(i64 %now)
  ret %Look %woken.for
done:
  ret %Look %look
}

define internal %Look @pool.wait.asleep(i64 %seen) noinline {
entry:
  %1 = call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %2 = atomicrmw add ptr @pool.sleepers, i32 1 seq_cst
  br label %try
try:
  %last = phi i64 [ %seen, %entry ], [ %now, %doze ]
  %look = call %Look @pool.enter(i64 %last)
  %now = extractvalue %Look %look, 0
  %member = extractvalue %Look %look, 1
  %entered = icmp ne i64 %member, 0
  br i1 %entered, label %done, label %doze
doze:
  %3 = call i32 @pthread_cond_wait(ptr @pool.wake, ptr @pool.mutex)
  br label %try
done:
  %4 = atomicrmw sub ptr @pool.sleepers, i32 1 seq_cst
  %5 = call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  ret %Look %look
}

; Enters the current job, if it is not generation %seen and has a free place: its number says which member we are.
define internal %Look @pool.enter(i64 %seen) {
  br label %look
look:
  %gate = load atomic i64, ptr @pool.gate seq_cst, align 8
  %generation = lshr i64 %gate, 32
  %is.new = icmp ne i64 %generation, %seen
  %high = lshr i64 %gate, 16
  %place = and i64 %high, 65535
  %is.open = icmp ne i64 %place, 0
  %may = and i1 %is.new, %is.open
  br i1 %may, label %claim, label %done
claim:
  %inside = sub i64 %gate, 65535                                      ; a place less, a worker inside more
  %pair = cmpxchg ptr @pool.gate, i64 %gate, i64 %inside acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %done, label %look
done:
  %member = phi i64 [ 0, %look ], [ %place, %claim ]
  %1 = insertvalue %Look poison, i64 %generation, 0
  %2 = insertvalue %Look %1, i64 %member, 1
  ret %Look %2
}

define internal void @pool.leave() {
  %old = atomicrmw sub ptr @pool.gate, i64 1 seq_cst
  %inside = and i64 %old, 65535
  %last = icmp eq i64 %inside, 1
  br i1 %last, label %ask, label %done
ask:
  %joining = load atomic i32, ptr @pool.joining seq_cst, align 4
  %asleep = icmp ne i32 %joining, 0
  br i1 %asleep, label %wake, label %done
wake:
  %1 = call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %2 = call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  %3 = call i32 @pthread_cond_signal(ptr @pool.left)
  ret void
done:
  ret void
}

; --- both ----------------------------------------------------------------------------------------------------------

; Runs what is left of the shares, first of our own, then of the members after us, until an error or the end.
define internal void @pool.run.chunks(i64 %self) {
entry:
  %team = load i64, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 4)
  br label %loop
loop:
  %visited = phi i64 [ 0, %entry ], [ %visited.next, %next ]
  %number = add i64 %self, %visited
  %member = urem i64 %number, %team
  %ok = call i1 @pool.run.share(i64 %member, i64 %team)
  br i1 %ok, label %next, label %done
next:
  %visited.next = add i64 %visited, 1
  %more = icmp slt i64 %visited.next, %team
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Takes chunks of a member's share and runs them until none is left. Whether no task has failed. There are four chunks
; in a share: a member that starts late or is interrupted leaves work to the others. Chunk k of n begins at k/n of the
; range, so that all chunks and shares are equal up to an iteration.
define internal i1 @pool.run.share(i64 %member, i64 %team) {
entry:
  %task = load ptr, ptr @pool.job
  %ctx = load ptr, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 1)
  %closure = load ptr, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 2)
  %extent = load i64, ptr getelementptr (%Job, ptr @pool.job, i64 0, i32 3)
  %taken = getelementptr [16 x i64], ptr @pool.taken, i64 %member
  %chunks = shl i64 %team, 2
  %first = shl i64 %member, 2
  br label %loop
loop:
  %error = load atomic i32, ptr @pool.error monotonic, align 4
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %look, label %done
look:                                                 ; reading is cheaper, if others have taken all
  %known = load atomic i64, ptr %taken monotonic, align 128
  %some = icmp ult i64 %known, 4
  br i1 %some, label %take, label %done
take:
  %count = atomicrmw add ptr %taken, i64 1 monotonic
  %left = icmp ult i64 %count, 4
  br i1 %left, label %cut, label %done
cut:
  %chunk = add i64 %first, %count
  %chunk.next = add i64 %chunk, 1
  %begin.scaled = mul i64 %extent, %chunk
  %end.scaled = mul i64 %extent, %chunk.next
  %begin = udiv i64 %begin.scaled, %chunks
  %end = udiv i64 %end.scaled, %chunks
  %empty = icmp eq i64 %begin, %end
  br i1 %empty, label %loop, label %run
run:
  %result = call i32 %task(ptr %ctx, ptr %closure, i64 %begin, i64 %end)
  %well = icmp eq i32 %result, 0
  br i1 %well, label %loop, label %failed
failed:
  %1 = cmpxchg ptr @pool.error, i32 0, i32 %result monotonic monotonic
  br label %done
done:
  %going = phi i1 [ %ok, %loop ], [ true, %look ], [ true, %take ], [ false, %failed ]
  ret i1 %going
}

; Nanoseconds of the clock at which spinning ends. It outlasts the serial steps between parallel loops of a model, and a
; caller that comes back at once: waking a thread takes longer than these.
define internal i64 @pool.deadline() noinline {
  %now = call i64 @pool.now()
  %deadline = add i64 %now, 200000
  ret i64 %deadline
}

; Whether spinning round %i is past the deadline. Asks the clock every 32 rounds, a pause is 10 to 140 cycles; and lets
; others have the core, since the one that is waited for may be among them.
define internal i1 @pool.is.late(i64 %i, i64 %deadline) alwaysinline {
  %phase = and i64 %i, 31
  %ask = icmp eq i64 %phase, 0
  br i1 %ask, label %clock, label %no
clock:
  %1 = call i32 @sched_yield()
  %now = call i64 @pool.now()
  %late = icmp sge i64 %now, %deadline
  ret i1 %late
no:
  ret i1 false
}

define internal i64 @pool.now() noinline {
  %time = alloca %Timespec
  %clock = load i32, ptr @pool.monotonic
  %1 = call i32 @clock_gettime(i32 %clock, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.at = getelementptr %Timespec, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.at
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %fraction
  ret i64 %now
}
