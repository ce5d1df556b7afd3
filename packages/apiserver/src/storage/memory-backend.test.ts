import { backendContract } from './backend.contract.ts';
import { createMemoryBackend } from './memory-backend.ts';

backendContract('memory', async () => {
  const backend = createMemoryBackend();
  return { backend, again: () => backend, dispose: () => backend.close() };
});
