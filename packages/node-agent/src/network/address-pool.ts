/**
 * One loopback address for each VM, out of 127.64.0.0/10 (four million). A file named by the address and made
 * exclusively is the lease: several agents of one host share the directory and never give out one address twice.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

const BASE = (127 << 24) | (64 << 16);
const SIZE = 2 ** 22;
/** Neighbours tried after the place the UID hashes to. */
const MAX_TRIES = 1024;
const ADDRESS = /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;

const textOf = (offset: number): string => {
  const n = BASE + offset;
  return [24, 16, 8, 0].map((shift) => (n >>> shift) & 255).join('.');
};

/** Claims an address for `uid`; the one it holds already, if any. Throws when the directory cannot be written. */
export async function claimAddress(directory: string, uid: string): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const start = createHash('sha256').update(uid).digest().readUInt32BE(0);
  for (let i = 0; i < MAX_TRIES; i++) {
    // 1..SIZE-2: neither the first nor the last address of the range.
    const address = textOf(1 + ((start + i) % (SIZE - 2)));
    const path = join(directory, address);
    try {
      const file = await open(path, 'wx', 0o600);
      await file.writeFile(uid).finally(() => file.close());
      return address;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if ((await readFile(path, 'utf8').catch(() => '')) === uid) return address;
    }
  }
  throw new Error('no free loopback address');
}

/** The address `uid` holds, if any. */
export async function addressOf(directory: string, uid: string): Promise<string | undefined> {
  for (const [address, holder] of await listAddresses(directory)) if (holder === uid) return address;
  return undefined;
}

/** Gives an address back if `uid` holds it. */
export async function releaseAddress(directory: string, address: string, uid: string): Promise<void> {
  if (!ADDRESS.test(address)) return;
  const path = join(directory, address);
  if ((await readFile(path, 'utf8').catch(() => undefined)) === uid) await rm(path, { force: true });
}

/** Every claim: address -> UID. */
export async function listAddresses(directory: string): Promise<Map<string, string>> {
  const claims = new Map<string, string>();
  for (const name of await readdir(directory).catch(() => [] as string[]))
    if (ADDRESS.test(name)) claims.set(name, await readFile(join(directory, name), 'utf8').catch(() => ''));
  return claims;
}
