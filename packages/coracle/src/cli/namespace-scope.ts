/** `--namespace` and `--all-namespaces` of commands that list. */
import { type FlagValues, textFlag, UsageError } from './command.ts';

export interface NamespaceScope {
  /** What `--namespace` names. */
  readonly given: string | undefined;
  readonly everywhere: boolean;
  /** The one namespace that is meant, where the context has `ofContext`; undefined: all. */
  of(ofContext: string): string | undefined;
}

/** Reads the two flags. Throws UsageError when both are given. */
export function namespaceScope(flags: FlagValues): NamespaceScope {
  const given = textFlag(flags, 'namespace');
  const everywhere = flags['all-namespaces'] === true;
  if (everywhere && given !== undefined) throw new UsageError('give --namespace or --all-namespaces, not both');
  return { given, everywhere, of: (ofContext) => (everywhere ? undefined : (given ?? ofContext)) };
}
