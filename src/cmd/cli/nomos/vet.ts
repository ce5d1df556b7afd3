/** `coracle nomos vet`: what a sync would find wrong with a directory, before it is pushed. */
import type { CommandContext } from '../command.ts';
import { errorText, openLocalSource } from './local-source.ts';

/** Prints the errors, and exits with 1 when there are any. */
export async function vet(context: CommandContext): Promise<number> {
  const { set } = await openLocalSource(context);
  // Without a server nobody can say that a kind does not exist.
  const isOffline = context.flags['no-api-server-check'] === true;
  const errors = [...set.errors, ...(isOffline ? [] : set.passing)];
  for (const error of errors) context.note(errorText(error));
  if (errors.length > 0) {
    context.note(`error: ${errors.length} ${errors.length === 1 ? 'problem' : 'problems'} found`);
    return 1;
  }
  context.print('✅ No validation issues found.');
  return 0;
}
