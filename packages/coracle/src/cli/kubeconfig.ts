import { existsSync } from 'node:fs';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { type CommandContext, CommandError, textFlag } from './command.ts';

/** `coracle kubeconfig`: the path, for `export KUBECONFIG=$(coracle kubeconfig)`. */
export async function kubeconfig({ flags, environment, print }: CommandContext): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  if (!existsSync(dir.kubeconfig))
    throw new CommandError(`no control plane has run in ${dir.root} yet (start one: coracle up --detach)`);
  print(dir.kubeconfig);
  return 0;
}
