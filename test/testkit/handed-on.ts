import { type Command, type FlagValues, flagArguments, readArguments } from '../../packages/coracle/src/cli/command.ts';

/** The flags as the process in the background reads them, which `coracle up --detach` starts with what it was given. */
export const handedOn = (flags: Command['flags'], given: FlagValues): FlagValues =>
  readArguments({ name: 'up', summary: '', flags, load: async () => async () => 0 }, flagArguments(flags, given)).flags;
