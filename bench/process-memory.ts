import { readFileSync } from 'node:fs';

/** Resident memory of a process in MiB; undefined where the system does not tell (/proc). */
export const residentMib = (pid: number): number | undefined => mib(`/proc/${pid}/status`, /^VmRSS:\s*(\d+) kB/m);

/** The same, with its share of what several processes have in common; undefined where the system does not tell. */
export const proportionalMib = (pid: number): number | undefined =>
  mib(`/proc/${pid}/smaps_rollup`, /^Pss:\s*(\d+) kB/m);

function mib(file: string, line: RegExp): number | undefined {
  try {
    const kib = line.exec(readFileSync(file, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}
