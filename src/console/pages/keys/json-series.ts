import type { components } from '../../../client/management-api.ts';
import type { Call } from '../../api/live.ts';

export type UsageSeries = components['schemas']['UsageSeries'];

/** The response of a series as JSON: by its description it may be CSV too, which only comes where it was asked for. */
export async function jsonSeries(
  call: ReturnType<Call<UsageSeries | string>>,
): Promise<{ readonly data?: UsageSeries; readonly error?: unknown; readonly response: Response }> {
  const { data, error, response } = await call;
  return { response, error, ...(typeof data === 'object' && { data }) };
}
