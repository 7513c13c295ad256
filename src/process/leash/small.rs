//! The small program that becomes a command, in machine code.
//!
//! Its arguments are a signal number as one byte, a directory, a program, and the program's arguments from its name
//! on. It requests the signal for its parent's death, enters the directory unless empty, and executes the program. On
//! failure it writes the error number.

/// Loaded at 0x400000, after the headers and two numbers: the pid of its parent and the output descriptor.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const CODE: &[u8] = &[
    0x48, 0x8b, 0x44, 0x24, 0x08, 0x0f, 0xb6, 0x30,       // mov rax, [rsp+8]; movzx esi, byte [rax]
    0x6a, 0x01, 0x5f, 0xb8, 0x9d, 0, 0, 0, 0x0f, 0x05,    // prctl(PR_SET_PDEATHSIG, esi)
    0x85, 0xc0, 0x78, 0x4b,                               // test eax, eax; js fail
    0x6a, 0x6e, 0x58, 0x0f, 0x05,                         // getppid()
    0x3b, 0x04, 0x25, 0xb0, 0, 0x40, 0, 0x75, 0x50,       // cmp eax, [0x4000b0]; jne end
    0x8b, 0x3c, 0x25, 0xb4, 0, 0x40, 0,                   // mov edi, [0x4000b4]
    0x6a, 0x02, 0x5e, 0x6a, 0x01, 0x5a,                   // push F_SETFD; pop rsi; push FD_CLOEXEC; pop rdx
    0x6a, 0x48, 0x58, 0x0f, 0x05,                         // fcntl(edi, rsi, rdx)
    0x48, 0x8b, 0x7c, 0x24, 0x10, 0x80, 0x3f, 0, 0x74, 9, // mov rdi, [rsp+16]; cmp byte [rdi], 0; je become
    0x6a, 0x50, 0x58, 0x0f, 0x05,                         // chdir(rdi)
    0x85, 0xc0, 0x78, 0x18,                               // test eax, eax; js fail
    // become:
    0x48, 0x8b, 0x7c, 0x24, 24,                           // mov rdi, [rsp+24]
    0x48, 0x8d, 0x74, 0x24, 32,                           // lea rsi, [rsp+32]
    0x48, 0x8b, 0x04, 0x24, 0x48, 0x8d, 0x54, 0xc4, 16,   // mov rax, [rsp]; lea rdx, [rsp+rax*8+16]
    0x6a, 0x3b, 0x58, 0x0f, 0x05,                         // execve(rdi, rsi, rdx)
    // fail:
    0x50, 0x8b, 0x3c, 0x25, 0xb4, 0, 0x40, 0,             // push rax; mov edi, [0x4000b4]
    0x48, 0x89, 0xe6, 0x6a, 0x04, 0x5a,                   // mov rsi, rsp; push 4; pop rdx
    0x6a, 0x01, 0x58, 0x0f, 0x05,                         // write(edi, rsi, rdx)
    // end:
    0x6a, 0x01, 0x5f, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05,    // exit_group(1)
];

/// The same for 64-bit ARM. Other processors never run it.
#[cfg(not(target_arch = "x86_64"))]
#[rustfmt::skip]
const CODE: &[u32] = &[
    0x10ff_ffd3, 0xf940_07e1, 0x3940_0021,                // adr x19, .-8; ldr x1, [sp, 8]; ldrb w1, [x1]
    0xd280_0020, 0xd280_14e8, 0xd400_0001,                // prctl(PR_SET_PDEATHSIG, w1)
    0x37f8_0300,                                          // tbnz w0, 31, fail
    0xd280_15a8, 0xd400_0001,                             // getppid()
    0x2940_5261, 0x6b01_001f, 0x5400_0321,                // ldp w1, w20, [x19]; cmp w0, w1; b.ne end
    0x2a14_03e0, 0xd280_0041, 0xd280_0022,                // mov w0, w20; mov x1, F_SETFD; mov x2, FD_CLOEXEC
    0xd280_0328, 0xd400_0001,                             // fcntl(w0, x1, x2)
    0xf940_0be0, 0x3940_0001, 0x3400_0081,                // ldr x0, [sp, 16]; ldrb w1, [x0]; cbz w1, become
    0xd280_0628, 0xd400_0001,                             // chdir(x0)
    0x37f8_0100,                                          // tbnz w0, 31, fail
    // become:
    0xf940_0fe0, 0x9100_83e1,                             // ldr x0, [sp, 24]; add x1, sp, 32
    0xf940_03e2, 0x8b22_6fe2, 0x9100_4042,                // ldr x2, [sp]; add x2, sp, x2, lsl 3; add x2, x2, 16
    0xd280_1ba8, 0xd400_0001,                             // execve(x0, x1, x2)
    // fail:
    0xb81f_0fe0, 0xb940_0660,                             // str w0, [sp, -16]!; ldr w0, [x19, 4]
    0x9100_03e1, 0xd280_0082,                             // mov x1, sp; mov x2, 4
    0xd280_0808, 0xd400_0001,                             // write(w0, x1, x2)
    // end:
    0xd280_0020, 0xd280_0bc8, 0xd400_0001,                // exit_group(1)
];

pub(super) fn image(parent: i32, answer: i32) -> Option<Vec<u8>> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return None,
    };
    let size = u16::try_from(0xb8 + size_of_val(CODE)).ok()?;
    #[rustfmt::skip]
    let headers: [u16; 88] = [
        // A 64-bit executable: its entry, and the table of its two segments.
        0x457f, 0x464c, 0x0102, 1, 0, 0, 0, 0, 2, machine, 1, 0, 0xb8, 0x40, 0, 0, 64, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 64, 56, 2, 0, 0, 0,
        // All of it is readable and executable at 0x400000.
        1, 0, 5, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 0, size, 0, 0, 0, size, 0, 0, 0, 0, 1, 0, 0,
        // A stack without execute permission.
        0xe551, 0x6474, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0,
    ];
    let mut image: Vec<u8> = headers.iter().flat_map(|it| it.to_le_bytes()).collect();
    image.extend([parent, answer].iter().flat_map(|it| it.to_le_bytes()));
    image.extend(CODE.iter().flat_map(|it| it.to_le_bytes()));
    Some(image)
}
