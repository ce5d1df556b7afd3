/** `coracle nomos hydrate`: the objects that a directory declares for each cluster, as they would be applied. */
import { type CommandContext, CommandError, textFlag } from '../command.ts';
import { noteErrors, openLocalSource } from './local-source.ts';
import { formatFlag, writeObjects } from './write-objects.ts';

/** Writes them, also of a source with errors, as far as it goes; exits with 1 then. */
export async function hydrate(context: CommandContext): Promise<number> {
  const format = formatFlag(context);
  const { clusters, unknownKinds } = await openLocalSource(context);
  if (clusters.length === 0) throw new CommandError('the source names no cluster that --clusters asks for');
  const isFlat = context.flags['flat'] === true;
  await writeObjects(clusters, { output: textFlag(context.flags, 'output') ?? 'compiled', format, isFlat });
  const count = noteErrors(context, clusters);
  if (unknownKinds.length > 0)
    throw new CommandError(
      `objects of ${unknownKinds.join(', ')} are left out: these kinds are not known without a server; omit --no-api-server-check, or add their definitions to the source`,
    );
  if (count === 0) return 0;
  context.note(`error: ${count} ${count === 1 ? 'problem' : 'problems'} found; what is refused is left out`);
  return 1;
}
