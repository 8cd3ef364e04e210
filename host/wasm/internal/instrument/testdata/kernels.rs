//! The kernels of kernels.c that also measure other languages.

#[no_mangle]
pub extern "C" fn fib(n: u32) -> u32 {
    if n < 2 {
        n
    } else {
        fib(n - 1) + fib(n - 2)
    }
}

#[no_mangle]
pub extern "C" fn sieve(n: usize) -> u32 {
    let mut composite = vec![false; n];
    let mut found = 0;
    for i in 2..n {
        if composite[i] {
            continue;
        }
        found += 1;
        for k in (2 * i..n).step_by(i) {
            composite[k] = true;
        }
    }
    found
}

#[no_mangle]
pub extern "C" fn matmul(n: u32) -> u32 {
    let (mut a, mut b, mut c) = ([[0f64; 64]; 64], [[0f64; 64]; 64], [[0f64; 64]; 64]);
    for i in 0..64 {
        for k in 0..64 {
            a[i][k] = (i + k) as f64;
            b[i][k] = i as f64 - k as f64;
        }
    }
    let mut sum = 0.0;
    for round in 0..n as usize {
        for i in 0..64 {
            for j in 0..64 {
                c[i][j] = (0..64).map(|k| a[i][k] * b[k][j]).sum();
            }
        }
        sum += c[round & 63][7];
    }
    sum as i64 as u32
}

const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

fn block(h: &mut [u32; 8], data: &[u8; 64]) {
    let mut w = [0u32; 64];
    for (i, four) in data.chunks_exact(4).enumerate() {
        w[i] = u32::from_be_bytes(four.try_into().unwrap());
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ w[i - 15] >> 3;
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let mut v = *h;
    for i in 0..64 {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let t1 = v[7].wrapping_add(s1).wrapping_add((v[4] & v[5]) ^ (!v[4] & v[6])).wrapping_add(K[i]).wrapping_add(w[i]);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let t2 = s0.wrapping_add((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        v.copy_within(0..7, 1);
        v[4] = v[4].wrapping_add(t1);
        v[0] = t1.wrapping_add(t2);
    }
    for i in 0..8 {
        h[i] = h[i].wrapping_add(v[i]);
    }
}

#[no_mangle]
pub extern "C" fn sha256(n: u32) -> u32 {
    let mut h = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut data = [0u8; 64];
    for i in 0..n {
        for (k, byte) in data.iter_mut().enumerate() {
            *byte = (7 * i + k as u32) as u8;
        }
        block(&mut h, &data);
    }
    let mut end = [0u8; 64];
    end[0] = 0x80;
    end[56..].copy_from_slice(&(n as u64 * 512).to_be_bytes());
    block(&mut h, &end);
    h[0]
}
