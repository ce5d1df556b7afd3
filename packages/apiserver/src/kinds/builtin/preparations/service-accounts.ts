/** What a ServiceAccount keeps of its secrets (serviceaccount/strategy.go). */
import { textAt } from '@coracle/apimachinery/types/read-value';

/** Only the names: they are those of its namespace. */
export function nameSecrets(account: Record<string, unknown>): void {
  if (!Array.isArray(account['secrets'])) return;
  account['secrets'] = account['secrets'].map((secret) => {
    const name = textAt(secret, 'name');
    return name === '' ? {} : { name };
  });
}
