import { VERSION } from '../config/version.ts';
import type { CommandContext } from './command.ts';

/** `coracle version`. */
export async function version({ flags, print }: CommandContext): Promise<number> {
  print(flags['json'] === true ? JSON.stringify({ version: VERSION, node: process.version }) : `coracle ${VERSION}`);
  return 0;
}
