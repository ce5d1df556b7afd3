/** `coracle convert preset -f FILE`: presets as the instance types and preferences that say the same. */

import type { VirtualMachineInstancePreset } from '@coracle/kubevirt/kinds/kubevirt';
import { convertPreset } from '@coracle/kubevirt/rules/instancetype/convert-preset';
import { stringify } from 'yaml';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { readManifests } from './manifests.ts';

/** `coracle convert`. */
export async function convert({ flags, words, print, note }: CommandContext): Promise<number> {
  const file = textFlag(flags, 'file');
  if (words.length !== 1 || words[0] !== 'preset' || file === undefined)
    throw new UsageError('convert takes: preset -f FILE (see: coracle convert --help)');
  const presets = (await readManifests(file)).filter(({ kind }) => kind === 'VirtualMachineInstancePreset');
  if (presets.length === 0) throw new CommandError(`${file} holds no VirtualMachineInstancePreset`);
  const made: unknown[] = [];
  for (const preset of presets as VirtualMachineInstancePreset[]) {
    const { instancetype, preference, notes } = convertPreset(preset);
    for (const object of [instancetype, preference]) if (object !== undefined) made.push(object);
    for (const text of notes) note(`${preset.metadata.name}: ${text}`);
  }
  print(
    flags['json'] === true
      ? JSON.stringify({ apiVersion: 'v1', kind: 'List', items: made })
      : made.map((object) => stringify(object)).join('---\n'),
  );
  return 0;
}
