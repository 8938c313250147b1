; The weights of an exported model lie in a file beside it: mapped, so that all processes share them, and checked by the
; mark that it begins with. The numbers are the same on Linux and macOS; windows.ll has these functions for Windows.

%Context = type { i64, ptr, i64, ptr, ptr, i64, i64 }
@lw.image.bytes = external constant i64
@lw.mark = external constant [64 x i8]
@lw.image.sum = external constant i64

declare i32 @open(ptr, i32, ...)
declare i32 @close(i32)
declare i64 @lseek(i32, i64, i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)

define i32 @lw.attach(ptr %context, ptr %path) {
  %no.path = icmp eq ptr %path, null
  br i1 %no.path, label %bad.argument, label %look
look:
  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 0)                          ; O_RDONLY
  %closed = icmp slt i32 %file, 0
  br i1 %closed, label %bad.weights, label %measure
measure:
  %wanted = load i64, ptr @lw.image.bytes
  %size = call i64 @lseek(i32 %file, i64 0, i32 2)                                  ; SEEK_END
  %fits = icmp eq i64 %size, %wanted
  br i1 %fits, label %map, label %other
map:
  %image = call ptr @mmap(ptr null, i64 %size, i32 1, i32 2, i32 %file, i64 0)      ; PROT_READ, MAP_PRIVATE
  %1 = call i32 @close(i32 %file)
  %unmapped = icmp eq ptr %image, getelementptr (i8, ptr null, i64 -1)              ; MAP_FAILED
  br i1 %unmapped, label %bad.weights, label %compare
compare:
  %difference = call i32 @memcmp(ptr %image, ptr @lw.mark, i64 64)
  %same = icmp eq i32 %difference, 0
  br i1 %same, label %attach, label %foreign
attach:
  %image.at = getelementptr %Context, ptr %context, i64 0, i32 3
  store ptr %image, ptr %image.at
  %mapping.at = getelementptr %Context, ptr %context, i64 0, i32 4
  store ptr %image, ptr %mapping.at
  ret i32 0
foreign:
  %2 = call i32 @munmap(ptr %image, i64 %size)
  br label %bad.weights
other:
  %3 = call i32 @close(i32 %file)
  br label %bad.weights
bad.weights:
  ret i32 -3
bad.argument:
  ret i32 -2
}

define void @lw.detach(ptr %context) {
  %mapping.at = getelementptr %Context, ptr %context, i64 0, i32 4
  %mapping = load ptr, ptr %mapping.at
  %none = icmp eq ptr %mapping, null
  br i1 %none, label %done, label %unmap
unmap:
  %size = load i64, ptr @lw.image.bytes
  %1 = call i32 @munmap(ptr %mapping, i64 %size)
  br label %done
done:
  ret void
}

; Reads all weights, and compares their sum: of all words of 8 bytes, word i taken 2i + 1 times. A mapping ends in zeros,
; so that the last word is whole.
define i32 @lw.api.verify(ptr %context) {
  %no.context = icmp eq ptr %context, null
  br i1 %no.context, label %bad.argument, label %begin
begin:
  %image.at = getelementptr %Context, ptr %context, i64 0, i32 3
  %image = load ptr, ptr %image.at
  %size = load i64, ptr @lw.image.bytes
  %up = add i64 %size, 7
  %words = lshr i64 %up, 3
  br label %add
add:
  %i = phi i64 [0, %begin], [%next, %add]
  %total = phi i64 [0, %begin], [%more, %add]
  %word.at = getelementptr i64, ptr %image, i64 %i
  %word = load i64, ptr %word.at
  %twice = shl i64 %i, 1
  %odd = or i64 %twice, 1
  %weighted = mul i64 %word, %odd
  %more = add i64 %total, %weighted
  %next = add i64 %i, 1
  %go.on = icmp ult i64 %next, %words
  br i1 %go.on, label %add, label %judge
judge:
  %wanted = load i64, ptr @lw.image.sum
  %whole = icmp eq i64 %more, %wanted
  %code = select i1 %whole, i32 0, i32 -3
  ret i32 %code
bad.argument:
  ret i32 -2
}
