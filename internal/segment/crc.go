package segment

import "hash/crc32"

// CRC-32 is the remainder of the message as a polynomial over GF(2). So the checksum of two
// messages in a row is that of the first, shifted by the length of the second, plus that of the
// second; and a shift is a multiplication by a power of x. This is what zlib's crc32_combine does
// by squaring matrices of 32 by 32 bits: a matrix that commutes with the shift is a polynomial,
// which takes one word.
//
// Polynomials are written as in hash/crc32: reflected, bit 31 is the coefficient of 1.
const (
	one = uint32(1) << 31
	x8  = one >> 8 // a shift by one byte
)

// multiply gives a·b modulo the polynomial of CRC-32 (RFC 1952, section 8).
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&one != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}

// shift is what a checksum is multiplied by when n bytes follow: x to the power of 8n, by repeated
// squaring.
func shift(n int) uint32 {
	power := one
	for square := x8; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(square, power)
		}
		square = multiply(square, square)
	}
	return power
}
