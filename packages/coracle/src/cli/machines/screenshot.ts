/** `coracle screenshot NAME FILE`: a picture of the screen of a machine, as a PNG. */

import { writeFile } from 'node:fs/promises';
import { type CommandContext, CommandError, UsageError } from '../command.ts';
import { readSubresource } from '../machine-stream.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';
import { checkScreen } from './screen.ts';

/** The PNG's signature, the head of its first chunk, width and height (RFC 2083). */
const PNG_HEAD = 24;
const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

/** `coracle screenshot`. */
export async function screenshot(context: CommandContext): Promise<number> {
  const { flags, print, signal, words } = context;
  const [name, file, ...rest] = words;
  if (name === undefined || file === undefined || file === '' || rest.length > 0)
    throw new UsageError('screenshot takes a machine and a FILE (see: coracle screenshot --help)');
  const moveCursor = flags['move-cursor'] === true;
  return withMachine(context, name, async (call) => {
    const { key, cluster } = call;
    if (isExplained(context))
      return equivalent(context, [
        ...['virtctl', 'vnc', 'screenshot', key.name, '-n', key.namespace, '-f', file],
        ...(moveCursor ? ['--move-cursor'] : []),
      ]);
    await checkScreen(call, signal);
    const query = moveCursor ? 'moveCursor=true' : '';
    const bytes = await readSubresource(cluster, key, { subresource: 'vnc/screenshot', query, signal });
    const picture = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (picture.length < PNG_HEAD || !picture.subarray(0, PNG.length).equals(PNG))
      throw new CommandError(`the server sent no picture of ${textOf(key)}`);
    // A screen may show what only its user is to see.
    await writeFile(file, picture, { mode: 0o600 });
    print(`${file} is the screen of ${textOf(key)}, ${picture.readUInt32BE(16)} x ${picture.readUInt32BE(20)}`);
    return 0;
  });
}
