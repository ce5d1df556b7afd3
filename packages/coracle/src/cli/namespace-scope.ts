/** `--namespace` and `--all-namespaces` of commands that list. */
import { type FlagValues, textFlag, UsageError } from './command.ts';

/**
 * Reads the two flags: what `--namespace` names (`given`), and the one namespace that is meant where the context has `ofContext`,
 * undefined for all (`of`). Throws UsageError when both are given.
 */
export function namespaceScope(flags: FlagValues) {
  const given = textFlag(flags, 'namespace');
  const everywhere = flags['all-namespaces'] === true;
  if (everywhere && given !== undefined) throw new UsageError('give --namespace or --all-namespaces, not both');
  return { given, everywhere, of: (ofContext: string) => (everywhere ? undefined : (given ?? ofContext)) };
}
