/** The status of a new APIService (apiservice/strategy.go). */
import { formatTime } from '@coracle/apimachinery/meta/object';
import { isObject, valueAt } from '@coracle/apimachinery/types/read-value';

export function prepareNewApiService(apiService: Record<string, unknown>, { now }: { readonly now: number }): void {
  if (isObject(valueAt(apiService, 'spec', 'service'))) return;
  apiService['status'] = { conditions: [localCondition(now)] };
}

/** What the status of every APIService says that no other server stands behind. */
export const localCondition = (now: number) => ({
  type: 'Available',
  status: 'True',
  lastTransitionTime: formatTime(now),
  reason: 'Local',
  message: 'Local APIServices are always available',
});
