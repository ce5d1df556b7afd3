/** A shell on the serial console of a guest that answers several lines, one after the other. */

import { eventually } from '../testkit/eventually.ts';
import { type Board, collect } from './board.ts';

/** Of all shells: the console may show what another one printed before. */
let asked = 0;

/** The kernel writes to the same console whenever it likes, for example that its machine was forked. */
const KERNEL_LINE = /\[ *\d+\.\d{6}\] [^\n]*(?:\n|$)/g;

export interface Shell {
  /** Returns what the line printed, without what the kernel wrote meanwhile. */
  run(line: string): Promise<string>;
}

/** A shell on the serial console; `isNew` logs in first. */
export async function shell(board: Board, name: string, isNew: boolean): Promise<Shell> {
  const socket = await board.connect(`${name}/console${isNew ? '?backlog=true' : ''}`);
  const seen = collect(socket);
  const type = (text: string): void => void socket.send(new TextEncoder().encode(text));
  if (isNew) {
    await seen.has('login:');
    const before = seen.text().length;
    type('root\n');
    await eventually('a prompt', () => seen.text().slice(before).includes(':~# '));
  }
  return {
    async run(line) {
      const n = asked++;
      const end = line.endsWith('&') ? '' : ';';
      type(`echo begin'-'${n}; ${line}${end} echo done'-'${n}\n`);
      await seen.has(`done-${n}`);
      const [, said = ''] = new RegExp(`begin-${n}\r?\n([^]*)done-${n}`).exec(seen.text()) ?? [];
      return said.replaceAll('\r', '').replaceAll(KERNEL_LINE, '').trim();
    },
  };
}
