// A link to an evaluator opens its evidence.
{
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.matches("details")) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
}
