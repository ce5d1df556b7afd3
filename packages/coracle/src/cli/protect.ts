/** `coracle protect`: what stands around the protection of machines; each verb has a file of its own. */
import { type CommandContext, UsageError } from './command.ts';

type Run = (context: CommandContext) => Promise<number>;

/** By the first word; `words` of the context are those behind it. */
const VERBS: Readonly<Record<string, () => Promise<Run>>> = {
  audit: async () => (await import('./protect-audit.ts')).protectAudit,
  status: async () => (await import('./protect-status.ts')).protectStatus,
};

/** `coracle protect`. */
export async function protect(context: CommandContext): Promise<number> {
  const [verb = '', ...words] = context.words;
  const load = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
  if (!load) throw new UsageError(`protect takes: ${Object.keys(VERBS).join(', ')} (see: coracle protect --help)`);
  return (await load())({ ...context, words });
}
