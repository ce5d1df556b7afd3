/** The machine that a command's word names: `NAME`, `vm/NAME`, `vmi/NAME`, each also with `.NAMESPACE` behind it. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { UsageError } from './command.ts';

const KINDS: ReadonlySet<string> = new Set(
  ['vm', 'vms', 'virtualmachine', 'virtualmachines'].flatMap((name) => [name, `${name}.kubevirt.io`]),
);
const INSTANCE_KINDS: ReadonlySet<string> = new Set(
  ['vmi', 'vmis', 'virtualmachineinstance', 'virtualmachineinstances'].flatMap((name) => [name, `${name}.kubevirt.io`]),
);

/** The one machine that a command's words name, `KIND NAME` as `KIND/NAME`. Throws UsageError for none and for more. */
export function machineWord(words: readonly string[], command: string): string {
  const [word, ...more] = machineWords(words);
  if (word === undefined || more.length > 0)
    throw new UsageError(`${command} takes one machine (see: coracle ${command.split(' ')[0]} --help)`);
  machineTargets(word, { given: undefined, ofContext: '' });
  return word;
}

/** The machines that a command's words name; `KIND NAME...`, as kubectl takes it, as `KIND/NAME...`. */
export function machineWords(words: readonly string[]): readonly string[] {
  const [kind = '', ...names] = words;
  return names.length > 0 && (KINDS.has(kind) || INSTANCE_KINDS.has(kind))
    ? names.map((name) => `${kind}/${name}`)
    : words;
}

/** What a word may mean, the likeliest first: names of machines may have dots in them too. Throws UsageError. */
export function machineTargets(
  word: string,
  namespaces: { readonly given: string | undefined; readonly ofContext: string },
): readonly ObjectKey[] {
  const [kind, ...rest] = word.split('/');
  const name = rest.length === 0 ? word : rest.join('/');
  if (rest.length > 1 || name === '' || (rest.length === 1 && !KINDS.has(kind!) && !INSTANCE_KINDS.has(kind!)))
    throw new UsageError(`a machine is named NAME, vm/NAME, vmi/NAME or NAME.NAMESPACE, not "${word}"`);
  const own = { namespace: namespaces.given ?? namespaces.ofContext, name };
  const dot = name.lastIndexOf('.');
  if (namespaces.given !== undefined || dot <= 0 || dot === name.length - 1) return [own];
  return [own, { namespace: name.slice(dot + 1), name: name.slice(0, dot) }];
}
