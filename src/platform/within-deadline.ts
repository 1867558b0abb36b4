/** The result of what runs already. Rejects with `late()` if there is none in time; the work itself goes on. */
export async function withinDeadline<Result>(
  work: Promise<Result>,
  deadlineMs: number,
  late: () => Error,
): Promise<Result> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(late()), deadlineMs);
  try {
    return await Promise.race([work, deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}
