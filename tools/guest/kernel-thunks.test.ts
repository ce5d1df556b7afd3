// A kernel in miniature: five places of code, the lists of two of them, and the two calls with the bounds of the lists.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replaceThunks } from './kernel-thunks.ts';

const BASE = 0x81000000;
const [THUNKS, RETURN_THUNK] = [BASE + 0x800, BASE + 0xc00];

/** Code at BASE: a guarded return, calls of the thunks of rax and r10, a jump to that of rbx, and the two calls. */
function kernel(): { elf: Buffer; code: () => string } {
  const code = Buffer.alloc(0x100, 0x90);
  const transfer = (at: number, opcode: number, target: number): void => {
    code[at] = opcode;
    code.writeInt32LE(target - (BASE + at + 5), at + 1);
  };
  transfer(0, 0xe9, RETURN_THUNK);
  transfer(8, 0xe8, THUNKS);
  code[16] = 0x2e;
  transfer(17, 0xe8, THUNKS + 10 * 32);
  transfer(24, 0xe9, THUNKS + 3 * 32);
  const lists = [
    { name: '.return_sites', address: BASE + 0x200, places: [0] },
    { name: '.retpoline_sites', address: BASE + 0x300, places: [8, 16, 24] },
  ].map(({ name, address, places }, i) => {
    const data = Buffer.alloc(places.length * 4);
    places.forEach((place, n) => {
      data.writeInt32LE(BASE + place - (address + n * 4), n * 4);
    });
    const at = 32 + i * 24;
    code.write('48c7c60000000048c7c700000000', at, 'hex');
    code.writeUInt32LE(address + data.length, at + 3);
    code.writeUInt32LE(address, at + 10);
    transfer(at + 14, 0xe8, BASE);
    return { name, address, data };
  });
  const names = Buffer.from(`\0.text\0.return_sites\0.retpoline_sites\0`);
  const sections = [{ name: '.text', address: BASE, data: code }, ...lists, { name: '', address: 0, data: names }];
  const parts = [Buffer.alloc(64)];
  const headers = sections.map(({ name, address, data }) => {
    const header = Buffer.alloc(64);
    header.writeUInt32LE(name === '' ? 0 : names.indexOf(`\0${name}\0`) + 1, 0);
    header.writeUInt32LE(address, 16);
    header.writeUInt32LE(address === 0 ? 0 : 0xffffffff, 20);
    header.writeBigUInt64LE(BigInt(Buffer.concat(parts).length), 24);
    header.writeBigUInt64LE(BigInt(data.length), 32);
    parts.push(data);
    return header;
  });
  const elf = Buffer.concat([...parts, ...headers]);
  elf.writeBigUInt64LE(BigInt(Buffer.concat(parts).length), 0x28);
  elf.writeUInt16LE(sections.length, 0x3c);
  elf.writeUInt16LE(sections.length - 1, 0x3e);
  return { elf, code: () => elf.toString('hex', 64, 64 + code.length) };
}

test('returns and indirect calls become plain ones, and nobody patches them again', () => {
  const { elf, code } = kernel();
  replaceThunks(elf);
  const at = (place: number, length: number): string => code().slice(place * 2, (place + length) * 2);
  assert.equal(at(0, 8), 'c3cccccccc909090');
  assert.equal(at(8, 8), 'ffd00f1f00909090'); // call rax
  assert.equal(at(16, 8), '41ffd20f1f009090'); // call r10
  assert.equal(at(24, 8), 'ffe3cccccc909090'); // jmp rbx
  assert.equal(at(46, 5), '0f1f440000');
  assert.equal(at(70, 5), '0f1f440000');
});

test('a kernel that hands its lists over in another way stays as it is', () => {
  const { elf } = kernel();
  elf[64 + 32] = 0x49;
  const before = Buffer.from(elf);
  replaceThunks(elf);
  assert.deepEqual(elf, before);
});
