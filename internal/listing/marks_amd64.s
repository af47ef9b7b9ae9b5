//go:build !purego

#include "textflag.h"

DATA bytes<>+0(SB)/8, $0x2222222222222222 // quotes
DATA bytes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c // backslashes
DATA bytes<>+16(SB)/8, $0x1f1f1f1f1f1f1f1f // the last control character
GLOBL bytes<>(SB), RODATA|NOPTR, $24

// func markVectors(marks, doc *byte, blocks int) (nonASCII bool)
TEXT ·markVectors(SB), NOSPLIT, $0-25
	MOVQ marks+0(FP), DI
	MOVQ doc+8(FP), SI
	MOVQ blocks+16(FP), CX
	VPBROADCASTQ bytes<>+0(SB), Y13
	VPBROADCASTQ bytes<>+8(SB), Y14
	VPBROADCASTQ bytes<>+16(SB), Y15
	VPXOR Y12, Y12, Y12 // all bytes, or-ed

next:
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y1
	VPOR     Y0, Y12, Y12
	VPOR     Y1, Y12, Y12
	VPCMPEQB Y0, Y13, Y2
	VPCMPEQB Y1, Y13, Y3
	VPCMPEQB Y0, Y14, Y4
	VPCMPEQB Y1, Y14, Y5
	VPMINUB  Y0, Y15, Y6  // the byte itself if it is not above
	VPMINUB  Y1, Y15, Y7
	VPCMPEQB Y0, Y6, Y6
	VPCMPEQB Y1, Y7, Y7
	VPOR     Y2, Y4, Y2
	VPOR     Y3, Y5, Y3
	VPOR     Y2, Y6, Y2
	VPOR     Y3, Y7, Y3
	VPMOVMSKB Y2, R8
	VPMOVMSKB Y3, R9
	SHLQ     $32, R9
	ORQ      R9, R8
	MOVQ     R8, (DI)
	ADDQ     $64, SI
	ADDQ     $8, DI
	DECQ     CX
	JNZ      next

	VPMOVMSKB Y12, AX
	VZEROUPPER
	TESTL AX, AX
	SETNE nonASCII+24(FP)
	RET
