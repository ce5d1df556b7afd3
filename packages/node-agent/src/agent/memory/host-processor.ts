import { readFile } from 'node:fs/promises';

/** What the host calls its processor; undefined where it does not say. */
export const hostProcessor = async (): Promise<string | undefined> =>
  /^model name\s*:\s*(.+)$/m.exec(await readFile('/proc/cpuinfo', 'utf8').catch(() => ''))?.[1]?.trim();
