/** Node agents in this process. (temporary frame) */
import type { PolicyRuleData } from './components.ts';

export interface RunningAgents {
  readonly names: readonly string[];
  close(options: { readonly keepVms: boolean }): Promise<void>;
}
export const agentRules: readonly PolicyRuleData[] = [];
export const connectNode = async (name: string) => {
  throw new Error(`node ${name} cannot be reached`);
};
export async function startAgents(_options: unknown): Promise<RunningAgents> {
  return { names: [], close: async () => {} };
}
