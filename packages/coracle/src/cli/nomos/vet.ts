/** `coracle nomos vet`: what a sync would find wrong with a directory, before it is pushed. */
import { type CommandContext, CommandError, numberFlag, textFlag } from '../command.ts';
import { type ClusterSet, noteErrors, openLocalSource } from './local-source.ts';
import { formatFlag, writeObjects } from './write-objects.ts';

const MOST = 1_000_000_000;

/** Prints the errors, and exits with 1 when there are any. */
export async function vet(context: CommandContext): Promise<number> {
  const { flags } = context;
  const format = formatFlag(context);
  const limit = (name: string): number => numberFlag(flags, name, { min: 0, max: MOST, or: 0 });
  const limits = { objects: limit('threshold') || limit('max-object-count'), bytes: limit('max-inventory-size') };
  const { clusters, unknownKinds } = await openLocalSource(context);
  if (clusters.length === 0) throw new CommandError('the source names no cluster that --clusters asks for');
  if (flags['keep-output'] === true)
    await writeObjects(clusters, { output: textFlag(flags, 'output') ?? 'compiled', format, isFlat: false });
  let count = noteErrors(context, clusters);
  for (const text of clusters.flatMap((one) => tooLarge(one, limits))) {
    context.note(text);
    count++;
  }
  if (unknownKinds.length > 0)
    context.note(`not checked, since no server was asked: objects of ${unknownKinds.join(', ')}`);
  if (count > 0) {
    context.note(`error: ${count} ${count === 1 ? 'problem' : 'problems'} found`);
    return 1;
  }
  context.print('✅ No validation issues found.');
  return 0;
}

/** What is above a limit; 0 = there is none. */
function tooLarge(
  { cluster, set }: ClusterSet,
  { objects, bytes }: { readonly objects: number; readonly bytes: number },
): string[] {
  const refs = set.enabled.map(({ ref }) => ref);
  const size = Buffer.byteLength(JSON.stringify(refs));
  return [
    ...(objects > 0 && refs.length > objects
      ? [`KNV1070: ${cluster} would have ${refs.length} objects of this source; ${objects} are allowed: split it`]
      : []),
    ...(bytes > 0 && size > bytes
      ? [`KNV1071: the inventory of ${cluster} would have ${size} bytes; ${bytes} are allowed: split the source`]
      : []),
  ];
}
