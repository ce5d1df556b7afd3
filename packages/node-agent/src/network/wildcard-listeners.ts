/** Which ports a program of this host has, or wants, on all addresses: as far as Linux tells an ordinary user. */
import { readFile } from 'node:fs/promises';

const TABLES = [
  ['tcp', '/proc/net/tcp'],
  ['tcp', '/proc/net/tcp6'],
  ['udp', '/proc/net/udp'],
  ['udp', '/proc/net/udp6'],
] as const;
/** A TCP socket that listens; a UDP socket that is bound and speaks to nobody in particular. */
const WAITING = { tcp: '0A', udp: '07' } as const;
/** 0.0.0.0 or ::, a port, and a far end without one. */
const LINE = /^\s*\d+: (?:0{8}|0{32}):([0-9A-F]{4}) 0+:0000 ([0-9A-F]{2}) /gm;

/** `tcp/22` for each line of such a table that stands for all addresses. */
export function parseWildcards(protocol: 'tcp' | 'udp', table: string): string[] {
  return [...table.matchAll(LINE)]
    .filter(([, , state]) => state === WAITING[protocol])
    .map(([, port = '']) => `${protocol}/${Number.parseInt(port, 16)}`);
}

/**
 * `tcp/22` for each port that something listens on at 0.0.0.0 or ::. While a guest has a port under its own number, a
 * program that wants it on all addresses gets it for IPv6 alone, and shows up here; one whose bind() failed altogether
 * leaves no trace.
 */
export async function wildcardListeners(): Promise<ReadonlySet<string>> {
  const found = await Promise.all(
    TABLES.map(async ([protocol, path]) => parseWildcards(protocol, await readFile(path, 'utf8').catch(() => ''))),
  );
  return new Set(found.flat());
}
