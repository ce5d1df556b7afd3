// Does at build time what a kernel without guards against speculation (mitigations=off) does at each start: at 60000 places it
// puts a plain return or an indirect call instead of a jump to a guarded one. An emulated CPU takes a quarter of a second for it.
// Two sections of the kernel list those places, and two calls hand it the bounds of the lists; those calls are taken out.

/** A section of the kernel; addresses are the low halves of those that it runs at. */
interface Section {
  readonly name: string;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
}

const [PREFIX, CALL, JUMP] = [0x2e, 0xe8, 0xe9];
/** The thunks of the sixteen registers lie one behind the other. */
const THUNK_BYTES = 32;
const PLAIN_RETURN = 'c3cccccccc';
const NO_CALL = '0f1f440000';

/** Changes an unpacked kernel (an ELF file) in place; one that is built in another way stays as it is. */
export function replaceThunks(elf: Buffer): void {
  const sections = kernelSections(elf);
  const returns = sections.find(({ name }) => name === '.return_sites');
  const calls = sections.find(({ name }) => name === '.retpoline_sites');
  if (!returns || !calls) return;
  const [returnsHandedOver, callsHandedOver] = [handOver(elf, returns), handOver(elf, calls)];
  if (returnsHandedOver === undefined || callsHandedOver === undefined) return;

  for (const { at } of sites(elf, returns, sections)) if (elf[at] === JUMP) elf.write(PLAIN_RETURN, at, 'hex');
  const guarded = sites(elf, calls, sections).map(({ at, address }) => {
    const prefix = elf[at] === PREFIX ? 1 : 0;
    return { at, prefix, opcode: elf[at + prefix]!, target: address + prefix + 5 + elf.readInt32LE(at + prefix + 1) };
  });
  const plain = guarded.filter(({ opcode }) => opcode === CALL || opcode === JUMP);
  const thunks = Math.min(...plain.map(({ target }) => target));
  for (const { at, prefix, opcode, target } of plain) {
    const register = (target - thunks) / THUNK_BYTES;
    if (!Number.isInteger(register) || register > 15)
      throw new Error('the thunks of the kernel are not where they should');
    const isCall = opcode === CALL;
    const code = [...(register > 7 ? [0x41] : []), 0xff, (isCall ? 0xd0 : 0xe0) + (register & 7)];
    const rest = prefix + 5 - code.length; // filled with what does nothing, or is not reached
    elf.set([...code, ...(isCall ? NOTHING[rest]! : Array<number>(rest).fill(0xcc))], at);
  }
  elf.write(NO_CALL, returnsHandedOver, 'hex');
  elf.write(NO_CALL, callsHandedOver, 'hex');
}

/** Instructions without effect, by their length. */
const NOTHING: Readonly<Record<number, readonly number[]>> = {
  2: [0x66, 0x90],
  3: [0x0f, 0x1f, 0x00],
  4: [0x0f, 0x1f, 0x40, 0x00],
};

/** Where the one call is that gets a list's end and start (mov rsi, end; mov rdi, start; call). */
function handOver(elf: Buffer, { address, size }: Section): number | undefined {
  const code = Buffer.from('48c7c60000000048c7c700000000e8', 'hex');
  code.writeUInt32LE(address + size, 3);
  code.writeUInt32LE(address, 10);
  const at = elf.indexOf(code);
  return at < 0 || elf.indexOf(code, at + 1) >= 0 ? undefined : at + code.length - 1;
}

/** The places that a list names: each entry says how far from itself its place is. */
function sites(elf: Buffer, list: Section, sections: readonly Section[]): { at: number; address: number }[] {
  return Array.from({ length: list.size / 4 }, (_, i) => {
    const address = list.address + i * 4 + elf.readInt32LE(list.offset + i * 4);
    const home = sections.find((s) => address >= s.address && address < s.address + s.size);
    if (!home) throw new Error(`the kernel has nothing at ${address.toString(16)}`);
    return { at: home.offset + address - home.address, address };
  });
}

function kernelSections(elf: Buffer): Section[] {
  const table = Number(elf.readBigUInt64LE(0x28));
  const header = (i: number): Buffer => elf.subarray(table + i * 64, table + (i + 1) * 64);
  const names = Number(header(elf.readUInt16LE(0x3e)).readBigUInt64LE(24));
  return Array.from({ length: elf.readUInt16LE(0x3c) }, (_, i) => {
    const fields = header(i);
    const name = names + fields.readUInt32LE(0);
    return {
      name: elf.toString('latin1', name, elf.indexOf(0, name)),
      // Sections of other addresses are not what runs from here (those of each CPU, for example).
      address: fields.readUInt32LE(20) === 0xffffffff ? fields.readUInt32LE(16) : Number.NaN,
      offset: Number(fields.readBigUInt64LE(24)),
      size: Number(fields.readBigUInt64LE(32)),
    };
  });
}
